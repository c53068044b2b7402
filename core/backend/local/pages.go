package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
)

// The form of the library's file: pages, of which the first two are heads that take turns.
const (
	heads         = 2
	headMagic     = 0xED0CDAED
	headVersion   = 2
	headSum       = 56 // where in a head its checksum stands, of all before
	pageHeader    = 16
	elementSize   = 16
	bucketHeader  = 16
	branchPage    = 1
	leafPage      = 2
	headPage      = 4
	freePage      = 16
	plainElement  = 0
	bucketElement = 1
	manyFree      = 0xFFFF // the number of free pages stands before them
)

var native = binary.NativeEndian

// pages holds the pages of a store against each other before the library reads them: that takes a damaged file at its word,
// and may claim all memory or end the process.
type pages struct {
	text    []byte
	size    uint64 // of a page
	most    uint64 // pages
	visited map[uint64]bool
}

// checkPages reports what is wrong with the form of a store's file. An empty one is a store to be.
func checkPages(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(text) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	p := pages{text: text, size: uint64(os.Getpagesize()), visited: map[uint64]bool{}}
	var last []byte
	for i := range uint64(heads) {
		head, err := p.head(i)
		if err != nil {
			return err
		}
		if last == nil || native.Uint64(head[48:]) > native.Uint64(last[48:]) {
			last = head
		}
	}
	root, free := native.Uint64(last[16:]), native.Uint64(last[32:])
	p.most = native.Uint64(last[40:])
	if p.most > uint64(len(text))/p.size {
		return errors.New("the file is cut short")
	}
	if err := p.free(free); err != nil {
		return err
	}
	return p.walk(root)
}

// head returns the head of a page. One that is damaged is not done without: the other tells of an earlier moment.
func (p *pages) head(i uint64) ([]byte, error) {
	if uint64(len(p.text)) < (i+1)*p.size {
		return nil, errors.New("the file is cut short")
	}
	page := p.text[i*p.size:]
	if native.Uint64(page) != i || native.Uint16(page[8:]) != headPage {
		return nil, fmt.Errorf("page %d is not the head of a store", i)
	}
	head := page[pageHeader:][:headSum+8]
	sum := fnv.New64a()
	_, _ = sum.Write(head[:headSum]) // never fails
	if native.Uint32(head) != headMagic || native.Uint32(head[4:]) != headVersion || sum.Sum64() != native.Uint64(head[headSum:]) {
		return nil, fmt.Errorf("page %d is not the head of a store", i)
	}
	if size := uint64(native.Uint32(head[8:])); size != p.size {
		return nil, fmt.Errorf("its pages have %d bytes, those of this machine %d", size, p.size)
	}
	return head, nil
}

// page returns a page with all that belongs to it, and its kind.
func (p *pages) page(id uint64) (page []byte, kind uint16, err error) {
	if id < heads || id >= p.most {
		return nil, 0, fmt.Errorf("there is no page %d", id)
	}
	page = p.text[id*p.size:]
	further := uint64(native.Uint32(page[12:]))
	if native.Uint64(page) != id || further >= p.most-id {
		return nil, 0, fmt.Errorf("page %d is another one", id)
	}
	for i := id; i <= id+further; i++ {
		if p.visited[i] {
			return nil, 0, fmt.Errorf("page %d is used twice", i)
		}
		p.visited[i] = true
	}
	return page[:(further+1)*p.size], native.Uint16(page[8:]), nil
}

func (p *pages) free(id uint64) error {
	page, kind, err := p.page(id)
	if err != nil {
		return err
	}
	count, list := uint64(native.Uint16(page[10:])), page[pageHeader:]
	if count == manyFree {
		count, list = native.Uint64(list), list[8:]
	}
	if kind != freePage || count > uint64(len(list))/8 {
		return fmt.Errorf("page %d is no list of free pages", id)
	}
	for i := range count {
		if free := native.Uint64(list[8*i:]); free < heads || free >= p.most {
			return fmt.Errorf("there is no page %d, which is said to be free", free)
		}
	}
	return nil
}

// walk follows a page to all that it leads to.
func (p *pages) walk(id uint64) error {
	page, kind, err := p.page(id)
	if err != nil {
		return err
	}
	if err := p.elements(page, kind); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

var errTorn = errors.New("holds what cannot be")

func (p *pages) elements(page []byte, kind uint16) error {
	count := uint64(native.Uint16(page[10:]))
	if kind != leafPage && kind != branchPage || pageHeader+count*elementSize > uint64(len(page)) {
		return errTorn
	}
	for i := range count {
		e := page[pageHeader+i*elementSize:]
		if kind == branchPage {
			if _, err := span(e, native.Uint32(e), native.Uint32(e[4:])); err != nil {
				return err
			}
			if err := p.walk(native.Uint64(e[8:])); err != nil {
				return err
			}
			continue
		}
		value, err := span(e, native.Uint32(e[4:]), native.Uint32(e[8:]), native.Uint32(e[12:]))
		if err != nil {
			return err
		}
		switch native.Uint32(e) {
		case plainElement:
		case bucketElement:
			if err := p.bucket(value); err != nil {
				return err
			}
		default:
			return errTorn
		}
	}
	return nil
}

// bucket follows what a name of a bucket leads to: a page, or one that stands in its place.
func (p *pages) bucket(value []byte) error {
	if len(value) < bucketHeader {
		return errTorn
	}
	if root := native.Uint64(value); root != 0 {
		return p.walk(root)
	}
	inline := value[bucketHeader:]
	if len(inline) < pageHeader || native.Uint16(inline[8:]) != leafPage {
		return errTorn
	}
	return p.elements(inline, leafPage)
}

// span returns the last of the parts that lie one after the other from an offset on.
func span(from []byte, at uint32, lengths ...uint32) ([]byte, error) {
	rest := from
	for i, n := 0, uint64(at); ; i++ {
		if n > uint64(len(rest)) {
			return nil, errTorn
		}
		if i == len(lengths) {
			return rest[:n], nil
		}
		rest, n = rest[n:], uint64(lengths[i])
	}
}
