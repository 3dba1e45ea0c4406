// Package observe says what a balancer can be watched by: a table of metrics with a fixed number of
// series, from which the exporters in its sub-packages and the page docs/metrics.md are made, and a log
// of decisions, traps and changes of policy. It needs no library beyond those of package host.
package observe
