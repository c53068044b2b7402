package exchange

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds a line: what is longer is no row of a log.
const maxLine = 1 << 20

// lines reads a text line by line, without line ends.
type lines struct {
	in     *bufio.Reader
	number int      // of the line that was read last, from 1
	held   []byte   // a line that is longer than the buffer
	back   [][]byte // lines to read again; nil for one that was too long
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, 1<<16)} }

// errLong is the error of a line above maxLine. The next call goes on behind it.
var errLong = errors.New("line is longer than 1 MiB")

// next is the next line, valid until the one after it is read; io.EOF at the end.
func (l *lines) next() ([]byte, error) {
	l.number++
	if len(l.back) > 0 {
		line := l.back[0]
		if l.back = l.back[1:]; line == nil {
			return nil, errLong
		}
		return line, nil
	}
	part, err := l.in.ReadSlice('\n')
	if err == nil {
		return bytes.TrimSuffix(part[:len(part)-1], []byte("\r")), nil
	}
	l.held = append(l.held[:0], part...)
	long := false
	for errors.Is(err, bufio.ErrBufferFull) {
		if part, err = l.in.ReadSlice('\n'); len(l.held) > maxLine {
			long = true
			continue
		}
		l.held = append(l.held, part...)
	}
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case long:
		return nil, errLong
	case len(l.held) == 0:
		return nil, io.EOF
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(l.held, []byte("\n")), []byte("\r")), nil
}

// unread gives lines back, to be read again after the current one.
func (l *lines) unread(rows [][]byte) {
	l.back = append(rows, l.back...)
	l.number -= len(rows)
}

// splitter divides the rows of a text with a header into cells.
type splitter struct {
	lines   *lines
	divider byte
	quotes  bool // a cell may stand in quotes, and then hold dividers and line ends
	cells   [][]byte
	text    []byte // of a row with quotes
	line    int    // where the row begins
}

// Problems of a row that is read nevertheless as one.
var (
	errQuote = errors.New("a quote is not closed")
	errAfter = errors.New("text follows a closing quote")
)

// maxQuoted is how many lines a cell in quotes may hold. A quote that is not closed by then costs its own line only.
const maxQuoted = 100

// next is the cells of the next row that is not blank, valid until the row after it is read.
func (s *splitter) next() ([][]byte, error) {
	for {
		line, err := s.lines.next()
		s.line = s.lines.number
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if s.quotes && bytes.IndexByte(line, '"') >= 0 {
			return s.quoted(line)
		}
		s.cells = s.cells[:0]
		for {
			at := bytes.IndexByte(line, s.divider)
			if at < 0 {
				s.cells = append(s.cells, line)
				return s.cells, nil
			}
			s.cells = append(s.cells, line[:at])
			line = line[at+1:]
		}
	}
}

// quoted divides a row in which cells stand in quotes, reading on where one holds line ends.
func (s *splitter) quoted(line []byte) ([][]byte, error) {
	text := append(s.text[:0], line...)
	var further [][]byte
	for open(text, s.divider) {
		more, err := s.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			s.lines.number--
		case errors.Is(err, errLong):
			further = append(further, nil)
		case err != nil:
			return nil, err
		default:
			further = append(further, bytes.Clone(more))
		}
		if err != nil || len(further) > maxQuoted {
			s.lines.unread(further)
			return nil, errQuote
		}
		text = append(append(text, '\n'), more...)
	}
	s.text = text
	s.cells = s.cells[:0]
	for more := true; more; {
		var cell []byte
		var err error
		if len(text) > 0 && text[0] == '"' {
			cell, text, more, err = unquote(text, s.divider)
		} else if end := bytes.IndexByte(text, s.divider); end >= 0 {
			cell, text = text[:end], text[end+1:]
		} else {
			cell, more = text, false
		}
		if err != nil {
			s.lines.unread(further) // each may be a row of its own
			return nil, err
		}
		s.cells = append(s.cells, cell)
	}
	return s.cells, nil
}

// unquote cuts off a cell that stands in quotes, and reports whether more cells follow. A doubled quote stands for one: the cell is closed up in place.
func unquote(text []byte, divider byte) (cell, rest []byte, more bool, err error) {
	kept, from := 0, 1
	for ; text[from] != '"' || from+1 < len(text) && text[from+1] == '"'; from++ {
		if text[from] == '"' {
			from++
		}
		text[kept] = text[from]
		kept++
	}
	cell, rest = text[:kept], text[from+1:]
	switch {
	case len(rest) == 0:
		return cell, nil, false, nil
	case rest[0] != divider:
		return nil, nil, false, errAfter
	}
	return cell, rest[1:], true, nil
}

// open reports whether a row ends within quotes.
func open(text []byte, divider byte) bool {
	const (
		begin  = iota // of a cell
		plain         // in a cell without quotes
		inside        // quotes
		after         // a quote within quotes: it closes them, or is the first of two that stand for one
	)
	state := begin
	for _, c := range text {
		switch {
		case state == inside:
			if c == '"' {
				state = after
			}
		case c == divider:
			state = begin
		case c == '"' && state != plain:
			state = inside
		case state == after:
			return false
		default:
			state = plain
		}
	}
	return state == inside
}
