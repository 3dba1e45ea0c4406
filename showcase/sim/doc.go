// Package sim is the virtual testbed: a small, pure, deterministic discrete-event simulator
// of clients, replicas and noisy neighbours, in which every decision is made by an
// [engine.Machine], native or WebAssembly.
//
// The engine's rules hold here too: integers only, every random number from our own seeded
// streams, no clock, no map iteration. Time is in nanoseconds of simulated time, work in
// nanoseconds of one core.
//
// Arrivals, demands, neighbours, network and policies draw from streams of their own, so that
// changing a policy never changes the traffic: two worlds of one scenario receive the same
// queries at the same instants, whatever their policies do with them.
package sim
