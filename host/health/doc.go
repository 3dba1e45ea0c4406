// Package health says which replicas may receive queries: eligibility, never ranking. It knows
// nothing of HTTP or gRPC; the check is a function that its user gives.
//
// A [Monitor] weighs, for each endpoint, what an operator said, whether it is new, the checks it
// answers, how its queries end, and how it compares with the fleet. It tells a balancer what
// changed, and nothing when nothing did. docs/health.md has the settings, their ranges and limits.
package health
