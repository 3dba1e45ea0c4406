// Package probe holds what Prequal knows of its replicas: the bounded probe pool, the window
// of recent RIF readings that yields the hot-cold threshold, and the replica's own estimator.
//
// Pool and Window keep their state in words of the engine's block and derive everything else
// from them, so that copying the block copies them.
package probe
