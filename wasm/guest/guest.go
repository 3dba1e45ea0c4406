//go:build wasip1

// Package guest turns an engine policy into a WebAssembly guest. A module is this package
// and one line:
//
//	func init() { guest.Serve(policy.Parse, policy.Names()...) }
//	func main() {}
//
// built with GOOS=wasip1 GOARCH=wasm -buildmode=c-shared. Nothing on the path of a decision
// allocates, so the guest's collector never runs there.
package guest

import (
	"slices"
	"strconv"
	"unsafe"

	"github.com/headroom-lb/headroom/engine"
	"github.com/headroom-lb/headroom/wasm/abi"
)

var (
	parse   func(spec string) (engine.Policy, error)
	names   string
	machine *engine.Engine
	arena   = make([]byte, abi.ArenaMin)
	text    string

	rows     []engine.Candidate
	tried    [abi.MaxTried]engine.ID
	answers  [abi.MaxAnswers]engine.Answer
	answered int32 // answers that belong to the next decision
	ids      = make([]engine.ID, 0, abi.MaxProbes)
	open     []engine.InFlight
	entries  = make([]engine.Entry, 0, abi.MaxEntries)
	count    engine.Counters
	fit      engine.Fit
)

// Serve names the policies that this module makes. Call it once, from an init function.
func Serve(p func(spec string) (engine.Policy, error), policies ...string) {
	parse, names = p, ""
	for i, n := range policies {
		if i > 0 {
			names += "\n"
		}
		names += n
	}
}

func address(b []byte) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func code(err error) int32 {
	if err == nil {
		return 0
	}
	text = err.Error()
	return int32(abi.CodeOf(err))
}

//go:wasmexport lb_abi_version
func lbVersion() int32 { return abi.Major<<16 | abi.Minor }

//go:wasmexport lb_nothing
func lbNothing() int32 { return 0 }

//go:wasmexport lb_arena
func lbArena(size int32) int32 {
	if size < 0 || size > abi.ArenaMax {
		return 0
	}
	if int(size) > len(arena) {
		arena = make([]byte, size)
	}
	return int32(address(arena))
}

//go:wasmexport lb_text
func lbText() int32 { return tell(text) }

//go:wasmexport lb_policies
func lbPolicies() int32 { return tell(names) }

func tell(s string) int32 { return int32(copy(arena[:abi.MaxText], s)) }

//go:wasmexport lb_configure
func lbConfigure(length int32, salt int64) int32 {
	if length < 0 || length > abi.MaxSpec {
		return code(&engine.ConfigError{Reason: "the spec is longer than " + strconv.Itoa(abi.MaxSpec) + " bytes"})
	}
	p, err := parse(string(arena[:length]))
	if err != nil {
		return code(err)
	}
	machine, answered = engine.New(p, engine.Config{Salt: uint64(salt)}), 0
	text = machine.Spec()
	return 0
}

//go:wasmexport lb_candidates
func lbCandidates(now int64, n int32) int32 {
	if machine == nil || n < 0 || int(n)*abi.CandidateSize > len(arena) {
		return int32(abi.CodeInternal)
	}
	rows = slices.Grow(rows[:0], int(n))[:n]
	for i := range rows {
		abi.GetCandidate(arena[i*abi.CandidateSize:], &rows[i])
	}
	return code(machine.SetCandidates(engine.Instant(now), rows))
}

//go:wasmexport lb_status
func lbStatus(now, id int64, status int32) int32 {
	if machine == nil {
		return int32(abi.CodeInternal)
	}
	if uint32(status) > uint32(engine.StatusUnavailable) {
		status = 255 // a status that is none must not become one by losing bits
	}
	return code(machine.SetStatus(engine.Instant(now), engine.ID(id), engine.Status(status)))
}

// The engine's decision is the record that the host reads: the two layouts are one.
var (
	_ [abi.DecisionLatency]struct{}   = [unsafe.Offsetof(engine.Decision{}.Latency)]struct{}{}
	_ [abi.DecisionAge]struct{}       = [unsafe.Offsetof(engine.Decision{}.Age)]struct{}{}
	_ [abi.DecisionIndex]struct{}     = [unsafe.Offsetof(engine.Decision{}.Index)]struct{}{}
	_ [abi.DecisionOffered]struct{}   = [unsafe.Offsetof(engine.Decision{}.Offered)]struct{}{}
	_ [abi.DecisionCold]struct{}      = [unsafe.Offsetof(engine.Decision{}.Cold)]struct{}{}
	_ [abi.DecisionHot]struct{}       = [unsafe.Offsetof(engine.Decision{}.Hot)]struct{}{}
	_ [abi.DecisionThreshold]struct{} = [unsafe.Offsetof(engine.Decision{}.Threshold)]struct{}{}
	_ [abi.DecisionRIF]struct{}       = [unsafe.Offsetof(engine.Decision{}.RIF)]struct{}{}
	_ [abi.DecisionUsesLeft]struct{}  = [unsafe.Offsetof(engine.Decision{}.UsesLeft)]struct{}{}
	_ [abi.DecisionRegime]struct{}    = [unsafe.Offsetof(engine.Decision{}.Regime)]struct{}{}
	_ [abi.DecisionCause]struct{}     = [unsafe.Offsetof(engine.Decision{}.Cause)]struct{}{}
)

//go:wasmexport lb_decide
func lbDecide(now, key int64, n int32) int32 {
	if machine == nil || uint32(n) > abi.MaxTried {
		answered = 0
		return int32(abi.CodeInternal)
	}
	if n|answered != 0 {
		return decideAttached(now, key, n)
	}
	if err := machine.Place(engine.Instant(now), engine.Key(key)); err != nil {
		return code(err)
	}
	return int32(machine.Placed().Index)
}

func decideAttached(now, key int64, n int32) int32 {
	for i := range n {
		tried[i] = engine.ID(abi.Get64(arena[8*i:]))
	}
	own := answers[:answered]
	answered = 0
	if err := machine.Attach(engine.Instant(now), tried[:n], own); err != nil {
		return code(err)
	}
	return lbDecide(now, key, 0)
}

//go:wasmexport lb_answers
func lbAnswers(n int32) int32 {
	if uint32(n) > abi.MaxAnswers {
		return int32(abi.CodeInternal)
	}
	for i := range n {
		abi.GetAnswer(arena[i*abi.AnswerSize:], &answers[i])
	}
	answered = n
	return 0
}

//go:wasmexport lb_decision
func lbDecision() int32 {
	if machine == nil {
		return 0
	}
	return int32(uintptr(unsafe.Pointer(machine.Placed())))
}

//go:wasmexport lb_report
func lbReport(now, id int64, outcome int32, latency int64) int32 {
	if machine == nil {
		return int32(abi.CodeInternal)
	}
	if uint32(outcome) > uint32(engine.OutcomeCancelled) {
		outcome = 255 // an outcome that is none must not become one by losing bits
	}
	return code(machine.Report(engine.Instant(now), engine.Report{
		ID: engine.ID(id), Outcome: engine.Outcome(outcome), Latency: engine.Duration(latency),
	}))
}

//go:wasmexport lb_record
func lbRecord(now, id int64, rif int32, latency, asked int64) int32 {
	if machine == nil {
		return int32(abi.CodeInternal)
	}
	a, err := machine.Record(engine.Instant(now), engine.ID(id), engine.Reading{
		RIF: uint32(rif), Latency: engine.Duration(latency), Asked: engine.Instant(asked),
	})
	if err != nil {
		return code(err)
	}
	return int32(a)
}

//go:wasmexport lb_load
func lbLoad(now, id int64, utilization, qps, eps int32) int32 {
	if machine == nil {
		return int32(abi.CodeInternal)
	}
	return code(machine.RecordLoad(engine.Instant(now), engine.ID(id), engine.LoadReport{
		Utilization: uint32(utilization), QPS: uint32(qps), EPS: uint32(eps),
	}))
}

//go:wasmexport lb_forget
func lbForget(now, id, asked int64) int32 {
	if machine == nil {
		return int32(abi.CodeInternal)
	}
	return code(machine.Forget(engine.Instant(now), engine.ID(id), engine.Instant(asked)))
}

//go:wasmexport lb_probes
func lbProbes(now int64) int32 {
	if machine == nil {
		return int32(abi.CodeInternal)
	}
	due, err := machine.Probes(engine.Instant(now), ids[:0])
	if err != nil {
		return code(err)
	}
	due = due[:min(len(due), abi.MaxProbes)]
	for i, id := range due {
		abi.Put64(arena[8*i:], uint64(id))
	}
	return int32(len(due))
}

//go:wasmexport lb_entries
func lbEntries(now int64) int32 {
	if machine == nil {
		return int32(abi.CodeInternal)
	}
	es, err := machine.Entries(engine.Instant(now), entries[:0])
	if err != nil {
		return code(err)
	}
	es = es[:min(len(es), abi.MaxEntries)]
	for i := range es {
		abi.PutEntry(arena[i*abi.EntrySize:], &es[i])
	}
	return int32(len(es))
}

//go:wasmexport lb_inspect
func lbInspect() int32 {
	if machine == nil {
		return int32(abi.CodeInternal)
	}
	if err := machine.Inspect(&count, &fit); err != nil {
		return code(err)
	}
	abi.PutInspection(arena, &count, &fit)
	return 0
}

//go:wasmexport lb_block
func lbBlock() int64 {
	if machine == nil {
		return 0
	}
	b := machine.Block()
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))<<32 | int64(8*len(b))
}

//go:wasmexport lb_restore
func lbRestore(length int32) int32 {
	if machine == nil || length < 0 || int(length) > len(arena) {
		return int32(abi.CodeInternal)
	}
	return code(machine.Restore(arena[:length]))
}

//go:wasmexport lb_in_flight
func lbInFlight(n int32) int32 {
	if machine == nil || n < 0 || int(n)*abi.InFlightSize > len(arena) {
		return int32(abi.CodeInternal)
	}
	open = slices.Grow(open[:0], int(n))[:n]
	for i := range open {
		abi.GetInFlight(arena[i*abi.InFlightSize:], &open[i])
	}
	return code(machine.SetInFlight(open))
}
