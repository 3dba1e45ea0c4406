package fuel

// kind says what follows an opcode.
type kind byte

const (
	unknown    kind = iota
	plain           // nothing
	block           // a block type
	label           // a label's depth
	table2          // br_table: labels, and the default
	call            // a function
	indirect        // call_indirect: a type and a table
	result          // select with its type
	local           // a local
	global          // a global
	index           // a table or segment: the one segment that may be added holds nothing
	indexes         // two of those
	memory          // alignment and offset
	lane            // a lane
	memLane         // alignment, offset, lane
	zero            // a byte that must be zero
	zeros           // two of those
	initMemory      // a data segment and a zero
	i32             // a constant of 32 bits, LEB128
	i64             // of 64 bits
	four            // four bytes
	eight           // eight
	sixteen         // sixteen
	reference       // a reference type
	function        // a function that a reference is made of
	prefixMisc
	prefixVector
)

// Opcodes that are looked for.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemoryGrow   = 0x40
	opI64Const     = 0x42
	opI64LtS       = 0x53
	opI64Sub       = 0x7d
	opI64ShrU      = 0x88
	opI64ExtendI32 = 0xad
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd

	miscMemoryInit = 0x08
	miscMemoryCopy = 0x0a
	miscMemoryFill = 0x0b
	miscTableInit  = 0x0c
	miscTableCopy  = 0x0e
	miscTableGrow  = 0x0f
	miscTableFill  = 0x11
)

// span gives the opcodes from first to last one kind.
type span struct {
	first, last byte
	kind        kind
}

func table(spans ...span) (t [256]kind) {
	for _, s := range spans {
		for op := int(s.first); op <= int(s.last); op++ {
			t[op] = s.kind
		}
	}
	return t
}

// The instructions of WebAssembly 2.0, which is what wazero takes unless told otherwise: no
// threads, tail calls, exceptions or typed references.
var (
	single = table(
		span{0x00, 0x01, plain}, span{0x02, 0x04, block}, span{0x05, 0x05, plain}, span{0x0b, 0x0b, plain},
		span{0x0c, 0x0d, label}, span{0x0e, 0x0e, table2}, span{0x0f, 0x0f, plain},
		span{0x10, 0x10, call}, span{0x11, 0x11, indirect},
		span{0x1a, 0x1b, plain}, span{0x1c, 0x1c, result},
		span{0x20, 0x22, local}, span{0x23, 0x24, global}, span{0x25, 0x26, index},
		span{0x28, 0x3e, memory}, span{0x3f, 0x40, zero},
		span{0x41, 0x41, i32}, span{0x42, 0x42, i64}, span{0x43, 0x43, four}, span{0x44, 0x44, eight},
		span{0x45, 0xc4, plain},
		span{0xd0, 0xd0, reference}, span{0xd1, 0xd1, plain}, span{0xd2, 0xd2, function},
		span{opMisc, opMisc, prefixMisc}, span{opVector, opVector, prefixVector},
	)
	misc = table(
		span{0x00, 0x07, plain}, span{0x08, 0x08, initMemory}, span{0x09, 0x09, index},
		span{0x0a, 0x0a, zeros}, span{0x0b, 0x0b, zero}, span{0x0c, 0x0c, indexes}, span{0x0d, 0x0d, index},
		span{0x0e, 0x0e, indexes}, span{0x0f, 0x11, index},
	)
	vector = table(
		span{0x00, 0x0b, memory}, span{0x0c, 0x0d, sixteen}, span{0x0e, 0x14, plain}, span{0x15, 0x22, lane},
		span{0x23, 0x53, plain}, span{0x54, 0x5b, memLane}, span{0x5c, 0x5d, memory}, span{0x5e, 0x99, plain},
		span{0x9b, 0xa1, plain}, span{0xa3, 0xa4, plain}, span{0xa7, 0xae, plain}, span{0xb1, 0xb1, plain},
		span{0xb5, 0xba, plain}, span{0xbc, 0xc1, plain}, span{0xc3, 0xc4, plain}, span{0xc7, 0xce, plain},
		span{0xd1, 0xd1, plain}, span{0xd5, 0xe1, plain}, span{0xe3, 0xed, plain}, span{0xef, 0xff, plain},
	)
)

// scope is what the indexes in a function's body may name.
type scope struct {
	types, functions, globals int
	locals                    uint64
}

// instruction reads one instruction: its opcode, that behind a prefix, and what it names where
// that is a function.
func (r *reader) instruction(s *scope) (op, sub byte, named uint32) {
	start := r.pos
	op = r.byte()
	k := single[op]
	switch k {
	case prefixMisc:
		code := r.u32()
		if code > 0xff {
			r.pos = start
			r.fail(ErrUnknown, "instruction 0xfc %#x", code)
			return op, 0, 0
		}
		sub, k = byte(code), misc[code]
	case prefixVector:
		// Of two bytes that make one number from 0x80 on, wazero reads the second as a nop. Both
		// readings are one as long as it is 0x01.
		sub = r.byte()
		if k = vector[sub]; sub >= 0x80 && r.byte() != 1 {
			k = unknown
		}
	}
	if k == unknown {
		r.pos = start
		if op == opMisc || op == opVector {
			r.fail(ErrUnknown, "instruction %#x %#x", op, sub)
		} else {
			r.fail(ErrUnknown, "instruction %#x", op)
		}
		return op, sub, 0
	}
	return op, sub, r.immediates(k, s)
}

func (r *reader) immediates(k kind, s *scope) (named uint32) {
	switch k {
	case block:
		r.blockType(s)
	case label, index:
		r.u32()
	case indexes:
		r.u32()
		r.u32()
	case table2:
		for range r.count() {
			r.u32()
		}
		r.u32()
	case call, function:
		return r.index(s.functions, "function")
	case indirect:
		r.index(s.types, "type")
		r.u32()
	case result:
		if n := r.byte(); n != 1 {
			r.fail(ErrUnknown, "select of %d types", n)
		}
		r.valueType()
	case local:
		if i := r.u32(); uint64(i) >= s.locals {
			r.fail(ErrMalformed, "local %d of %d", i, s.locals)
		}
	case global:
		r.index(s.globals, "global")
	case memory:
		r.memoryArgument()
	case memLane:
		r.memoryArgument()
		r.byte()
	case lane:
		r.byte()
	case zero:
		r.zero()
	case zeros:
		r.zero()
		r.zero()
	case initMemory:
		r.u32()
		r.zero()
	case i32:
		r.signed(32)
	case i64:
		r.signed(64)
	case four:
		r.bytes(4)
	case eight:
		r.bytes(8)
	case sixteen:
		r.bytes(16)
	case reference:
		r.referenceType()
	}
	return 0
}

func (r *reader) zero() {
	if b := r.byte(); b != 0 {
		r.fail(ErrUnknown, "memory %#x", b)
	}
}

func (r *reader) memoryArgument() {
	if align := r.u32(); align >= 32 {
		r.fail(ErrUnknown, "alignment %#x", align)
	}
	r.u32()
}

// blockType reads nothing, one value type, or the index of a function type.
func (r *reader) blockType(s *scope) {
	if r.left() > 0 {
		switch r.b[r.pos] {
		case typeNone, typeI32, typeI64, typeF32, typeF64, typeV128, typeFunc, typeExtern:
			r.pos++
			return
		}
	}
	if i := r.signed(33); i < 0 {
		r.fail(ErrUnknown, "block type %d", i)
	} else if i >= int64(s.types) {
		r.fail(ErrMalformed, "block type %d of %d", i, s.types)
	}
}

const (
	typeNone   = 0x40 // of a block
	typeI32    = 0x7f
	typeI64    = 0x7e
	typeF32    = 0x7d
	typeF64    = 0x7c
	typeV128   = 0x7b
	typeFunc   = 0x70
	typeExtern = 0x6f
)

func (r *reader) valueType() byte {
	t := r.byte()
	switch t {
	case typeI32, typeI64, typeF32, typeF64, typeV128, typeFunc, typeExtern:
	default:
		r.fail(ErrUnknown, "value type %#x", t)
	}
	return t
}

func (r *reader) referenceType() byte {
	t := r.byte()
	if t != typeFunc && t != typeExtern {
		r.fail(ErrUnknown, "reference type %#x", t)
	}
	return t
}
