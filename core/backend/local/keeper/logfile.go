package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// logFile is a file that output is appended to. When it is full it is renamed to NAME.1, what was NAME.1 to NAME.2, and so
// on. Output that cannot be written is dropped: a full disk does not hold up who writes it.
//
// lumberjack does not fit: it names old files by the millisecond, so that a fast writer overwrites them, counts in MB, and
// leaves a goroutine behind.
type logFile struct {
	path  string
	bytes int64     // that it has room for; 0: for all
	older int       // files that are kept
	notes io.Writer // where it is told what goes wrong

	file    *os.File // nil: to be opened
	size    int64
	inLine  bool // the file ends within a line
	dropped int64
}

// newLogFile opens the file, so that it is there also when nothing is written.
func newLogFile(path string, bytes int64, older int, notes io.Writer) *logFile {
	l := &logFile{path: path, bytes: bytes, older: older, notes: notes}
	_ = l.open() // the first write tries again, and tells
	return l
}

// Write takes all of p, whatever becomes of it.
func (l *logFile) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n, err := l.write(rest)
		rest = rest[n:]
		if err != nil {
			if l.dropped == 0 {
				fmt.Fprintf(l.notes, "%s: output is dropped: %v\n", filepath.Base(l.path), err)
			}
			l.dropped += int64(len(rest))
			break
		}
	}
	return len(p), nil
}

// write writes as much of p as the file has room for: whole lines if possible.
func (l *logFile) write(p []byte) (int, error) {
	if l.file == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	if l.bytes > 0 && l.size+int64(len(p)) > l.bytes {
		room := max(l.bytes-l.size, 0)
		if end := bytes.LastIndexByte(p[:room], '\n'); end >= 0 || l.size > 0 && !l.inLine {
			room = int64(end) + 1
		}
		n, err := l.append(p[:room])
		if err != nil {
			return n, err
		}
		return n, l.rotate()
	}
	return l.append(p)
}

func (l *logFile) append(p []byte) (int, error) {
	n, err := l.file.Write(p)
	if n > 0 {
		l.size, l.inLine = l.size+int64(n), p[n-1] != '\n'
	}
	return n, err
}

func (l *logFile) open() error {
	f, err := openForAppend(l.path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return err
	}
	l.file, l.size, l.inLine = f, info.Size(), false
	return nil
}

func openForAppend(path string) (*os.File, error) {
	return inputfile.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// rotate makes room. What it did not get done, the next write does.
func (l *logFile) rotate() error {
	_ = l.file.Close() // every write has told its error
	l.file = nil
	if l.older == 0 {
		if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for n := l.older; n > 0; n-- {
		if err := os.Rename(l.name(n-1), l.name(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.open()
}

// name is that of the n-th older file.
func (l *logFile) name(n int) string {
	if n == 0 {
		return l.path
	}
	return l.path + "." + strconv.Itoa(n)
}

// end closes the file and says how much is missing, if anything is.
func (l *logFile) end() (warning string) {
	if l.file != nil {
		_ = l.file.Close() // every write has told its error
	}
	if l.dropped == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d bytes of output were dropped", filepath.Base(l.path), l.dropped)
}
