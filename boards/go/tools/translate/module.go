// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
)

// What is read of a WebAssembly module: what clang makes of C that imports nothing.
type module struct {
	types     []signature
	functions []function
	table     []int // functions, -1: none
	pages     int
	globals   []int64
	exports   []export
	data      []segment
	names     map[int]string // of functions, where the module has them
}

type signature struct{ parameters, results []byte }

type function struct {
	signature int
	locals    []byte // types, parameters included
	code      []byte
}

type export struct {
	name  string
	index int // of a function
}

type segment struct {
	at    int64
	bytes []byte
}

// Types of values.
const (
	i32 = 0x7f
	i64 = 0x7e
)

type reader struct{ bytes.Buffer }

func (r *reader) byte() byte {
	b, err := r.ReadByte()
	if err != nil {
		panic("the module is cut off")
	}
	return b
}

func (r *reader) signed() int64 {
	var value int64
	for shift := uint(0); ; shift += 7 {
		b := r.byte()
		value |= int64(b&0x7f) << shift
		if b&0x80 != 0 {
			continue
		}
		if shift < 57 && b&0x40 != 0 {
			value |= -1 << (shift + 7)
		}
		return value
	}
}

func (r *reader) number() int {
	value := 0
	for shift := uint(0); ; shift += 7 {
		b := r.byte()
		value |= int(b&0x7f) << shift
		if b&0x80 == 0 {
			return value
		}
	}
}

func (r *reader) part() []byte   { return r.Next(r.number()) }
func (r *reader) string() string { return string(r.part()) }

// constant reads an expression that is one constant.
func (r *reader) constant() int64 {
	if op := r.byte(); op != 0x41 && op != 0x42 {
		panic(fmt.Sprintf("0x%x is no constant", op))
	}
	value := r.signed()
	r.byte() // its end
	return value
}

func parse(file []byte) *module {
	if !bytes.HasPrefix(file, []byte("\x00asm\x01\x00\x00\x00")) {
		panic("no WebAssembly")
	}
	m := &module{names: map[int]string{}}
	r := reader{*bytes.NewBuffer(file[8:])}
	for r.Len() > 0 {
		id := r.byte()
		m.section(id, reader{*bytes.NewBuffer(r.part())})
	}
	return m
}

func (m *module) section(id byte, r reader) {
	if id == 0 {
		if r.string() == "name" {
			m.readNames(r)
		}
		return
	}
	if id == 12 { // how many segments follow
		return
	}
	for count := r.number(); count > 0; count-- {
		switch id {
		case 1:
			r.byte()
			m.types = append(m.types, signature{r.part(), r.part()})
		case 3:
			m.functions = append(m.functions, function{signature: r.number()})
		case 4:
			r.byte()
			m.table = make([]int, limits(&r))
			for i := range m.table {
				m.table[i] = -1
			}
		case 5:
			m.pages = limits(&r)
		case 6:
			if r.byte() != i32 {
				panic("a global that is no i32")
			}
			r.byte()
			m.globals = append(m.globals, r.constant())
		case 7:
			name := r.string()
			if kind, index := r.byte(), r.number(); kind == 0 {
				m.exports = append(m.exports, export{name, index})
			}
		case 9:
			if r.number() != 0 {
				panic("elements of an unknown kind")
			}
			at := int(r.constant())
			for n := r.number(); n > 0; n-- {
				m.table[at] = r.number()
				at++
			}
		case 10:
			m.code(len(m.functions)-count, reader{*bytes.NewBuffer(r.part())})
		case 11:
			if r.number() != 0 {
				panic("data of an unknown kind")
			}
			at := r.constant()
			m.data = append(m.data, segment{at, r.part()})
		default:
			panic(fmt.Sprintf("section %d is not known", id))
		}
	}
}

// limits reads how large a table or memory is at first.
func limits(r *reader) int {
	hasMost, least := r.byte(), r.number()
	if hasMost != 0 {
		r.number()
	}
	return least
}

func (m *module) code(index int, r reader) {
	f := &m.functions[index]
	f.locals = append(f.locals, m.types[f.signature].parameters...)
	for groups := r.number(); groups > 0; groups-- {
		count := r.number()
		f.locals = append(f.locals, bytes.Repeat([]byte{r.byte()}, count)...)
	}
	f.code = r.Bytes()
}

func (m *module) readNames(r reader) {
	for r.Len() > 0 {
		kind, part := r.byte(), reader{*bytes.NewBuffer(r.part())}
		if kind != 1 { // those of functions
			continue
		}
		for count := part.number(); count > 0; count-- {
			index := part.number()
			m.names[index] = part.string()
		}
	}
}
