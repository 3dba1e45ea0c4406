// Package engine is Headroom's decision state machine: candidates, a policy and its state.
//
// It is pure. Every instant and every seed is an argument; there is no clock, no global
// randomness, no map iteration and no floating point, so the same calls give the same
// decisions natively and in WebAssembly on every architecture.
//
// It is single-threaded. One decide-and-charge step is indivisible because calls are serial;
// locks, names, clocks and sockets belong to the host.
//
// All mutable state lives in one block of 64-bit words (see [Engine.Block]). Copying the
// block is a snapshot, writing it back is a restore, and a decision is a function of the
// block and the call. Tables that can be derived from the candidates are not in it.
package engine
