// Package policy holds the rules that decide among candidates, one file each, and the spec
// line that names a rule and its settings.
//
// Every policy states its rule, its cost, how it breaks ties and how it fails. All of them
// honour [engine.Query.Tried], allocate nothing per decision and keep their state in the
// engine's block.
package policy
