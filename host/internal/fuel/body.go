package fuel

import "slices"

const (
	unitWeight = 64         // instructions of straight code that a unit pays for
	freeWeight = 16         // a function of no more instructions is free, so it can call nobody
	callWeight = freeWeight // which a call weighs besides itself: so it is paid for by the caller
	hostCall   = 1000       // units: a call of the host takes microseconds at worst
	byteShift  = 4          // 2^4 bytes to a unit
	entryShift = 1          // 2^1 table elements
	noShift    = -1         // the operand costs nothing
)

// charge is a place in a body where fuel is taken, in the order of offsets.
type charge struct {
	at     int // offset in the body
	depth  int // open blocks there
	region int // whose weight sets the price, or -1
	cost   int64
	shift  int // noShift, or the operand on top of the stack costs so many bits less than it is
}

// code rewrites the bodies of all functions.
func (m *module) code() ([][]byte, error) {
	r := m.sections[secCode]
	own := len(m.functions) - m.imported
	n := 0
	if m.present[secCode] {
		n = int(r.count())
	}
	if n != own {
		r.fail(ErrMalformed, "%d bodies for %d functions", n, own)
	}
	out := make([][]byte, 0, own)
	locals := uint64(0)
	for i := range own {
		if !r.ok() {
			break
		}
		body := r.sub(r.u32())
		b := bodyPass{m: m, r: &body, typ: m.functions[m.imported+i]}
		out = append(out, b.run())
		if locals += b.locals; locals > maxAllLocals {
			body.fail(ErrMalformed, "too many locals")
		}
		r.err = body.err
	}
	r.end()
	return out, r.err
}

// bodyPass rewrites one function. A region is its straight code outside of loops, the first,
// or a loop without the loops in it.
type bodyPass struct {
	m       *module
	r       *reader
	typ     int
	locals  uint64 // its own, without parameters
	weights []int64
	charges []charge
	headed  bool // a loop is entered before any branch: it pays for the call
}

func (b *bodyPass) run() []byte {
	groups := b.r.count()
	first := b.r.pos
	for range groups {
		b.locals += uint64(b.r.u32())
		b.r.valueType()
		if b.locals > maxLocals {
			b.r.fail(ErrMalformed, "function of %d locals", b.locals)
		}
		if !b.r.ok() {
			return nil
		}
	}
	start := b.r.pos
	b.scan()
	if !b.r.ok() {
		return nil
	}
	if whole := b.weights[0]; whole > freeWeight && !(b.headed && whole <= unitWeight) {
		b.charges = slices.Insert(b.charges, 0, charge{at: start, shift: noShift})
	}
	if len(b.charges) == 0 {
		return b.r.b
	}
	spare := uint32(len(b.m.types[b.typ].params)) + uint32(b.locals)
	out := appendU32(make([]byte, 0, len(b.r.b)+24*len(b.charges)+32), groups+2)
	out = append(out, b.r.b[first:start]...)
	// One trap for all charges, out of the way: with one at each charge readings took a tenth
	// longer. The body becomes a block that gives what the function gives, so its branches to the
	// function's end keep their depth; around it is the block that charges leave by.
	out = append(out, 1, typeI64, 1, typeI32, opBlock, typeNone, opBlock)
	out = b.m.resultBlock(out, b.typ)
	done := start
	for _, c := range b.charges {
		out = append(out, b.r.b[done:c.at]...)
		if c.region >= 0 {
			c.cost = (b.weights[c.region] + unitWeight - 1) / unitWeight
		}
		out = b.m.take(out, c, spare, spare+1)
		done = c.at
	}
	out = append(out, b.r.b[done:]...) // up to the end of what is a block now
	return append(out, opReturn, opEnd, opUnreachable, opEnd)
}

// scan walks the instructions, weighs the regions and finds where to charge.
func (b *bodyPass) scan() {
	s := scope{
		types: len(b.m.types), functions: len(b.m.functions), globals: b.m.globals,
		locals: uint64(len(b.m.types[b.typ].params)) + b.locals,
	}
	b.weights = []int64{0}
	regions := []int{0} // of the open blocks, the function's own first
	straight := true    // no branch yet
	for len(regions) > 0 && b.r.ok() {
		at := b.r.pos
		op, sub, named := b.r.instruction(&s)
		inside := regions[len(regions)-1]
		b.weights[inside]++
		before := func(cost int64, shift int) {
			b.charges = append(b.charges, charge{at, len(regions) - 1, -1, cost, shift})
		}
		switch op {
		case opBlock:
			regions = append(regions, inside)
		case opIf:
			regions = append(regions, inside)
			straight = false
		case opLoop:
			b.headed = b.headed || straight
			b.m.loops++
			b.charges = append(b.charges, charge{b.r.pos, len(regions), len(b.weights), 0, noShift})
			regions = append(regions, len(b.weights))
			b.weights = append(b.weights, 0)
		case opEnd:
			regions = regions[:len(regions)-1]
		case opRefFunc:
			b.m.declare = true
		case opCall:
			straight = false
			b.weights[inside] += callWeight
			if int(named) < b.m.imported {
				before(hostCall, noShift)
			}
		case opCallIndirect:
			straight = false
			b.weights[inside] += callWeight
			if b.m.escapes {
				before(hostCall, noShift)
			}
		case opMemoryGrow:
			before(hostCall, noShift)
		case opMisc:
			switch sub {
			case miscMemoryInit, miscMemoryCopy, miscMemoryFill:
				before(1, byteShift)
			case miscTableInit, miscTableCopy, miscTableFill:
				before(1, entryShift)
			case miscTableGrow:
				before(hostCall, entryShift)
			}
		}
		if op >= opBr && op <= opReturn {
			straight = false
		}
	}
	b.r.end()
}

// resultBlock appends the type of a block that takes nothing and gives what a function of type
// t gives. More than one value needs a type of its own.
func (m *module) resultBlock(out []byte, t int) []byte {
	switch results := m.types[t].results; len(results) {
	case 0:
		return append(out, typeNone)
	case 1:
		return append(out, results[0])
	}
	i, ok := m.blocks[t]
	if !ok {
		i = len(m.types) + len(m.blocks)
		m.blocks[t] = i
		m.blockTypes = append(m.blockTypes, 0x60, 0)
		m.blockTypes = append(appendU32(m.blockTypes, uint32(len(m.types[t].results))), m.types[t].results...)
	}
	return appendS64(out, int64(i))
}

// take appends code that takes fuel, and leaves for the trap below zero. The stack stays as it
// was.
func (m *module) take(out []byte, c charge, left, operand uint32) []byte {
	counter := uint32(m.globals)
	if c.shift != noShift {
		out = appendU32(append(out, opLocalTee), operand)
	}
	out = appendU32(append(out, opGlobalGet), counter)
	if c.shift != noShift {
		out = append(appendU32(append(out, opLocalGet), operand), opI64ExtendI32)
		out = append(appendS64(append(out, opI64Const), int64(c.shift)), opI64ShrU, opI64Sub)
	}
	out = append(appendS64(append(out, opI64Const), c.cost), opI64Sub)
	out = appendU32(append(out, opLocalTee), left)
	out = appendU32(append(out, opGlobalSet), counter)
	out = appendU32(append(out, opLocalGet), left)
	return appendU32(append(out, opI64Const, 0, opI64LtS, opBrIf), uint32(c.depth+1))
}
