// Package showcase serves the live page: two balancers, the same arrivals, every decision made
// by the engine, seen as a skyline of requests in flight.
//
// A [Room] runs one scenario under two policies and publishes a binary frame thirty times a
// second; any number of viewers share it. A frame is a full snapshot, so one that is skipped
// costs nothing. Each viewer has a slot for the newest frame and a window of two frames that
// its browser has not acknowledged, so that a slow browser sees fewer frames and never old
// ones. Without JavaScript the page is a table of the same scenario, and its form's query
// string is the link to it.
package showcase
