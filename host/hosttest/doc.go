// Package hosttest holds a guest to laws, in whatever language it was written: generated calls
// go in, answers are judged from outside, and what breaks a law is cut down to the few calls
// that show it. [TestGuest] is for the tests of those who write guests; the command
// `wasmhost verify` prints what [Verify] finds.
//
// Some laws bind every guest. Others bind those that claim them by name, see [Claims].
package hosttest
