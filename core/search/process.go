package search

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// process is another program that answers lines with lines. It leads a process group, which ends with it.
type process struct {
	command *exec.Cmd
	input   *os.File
	lines   chan []byte   // what it writes, line by line; closed at the end, when why says how it ended
	stopped chan struct{} // closed when nobody reads lines any more
	stop    sync.Once
	gone    chan struct{} // closed when it has ended and was waited for
	why     error
	last    lastWords
}

const (
	// grace is how long a process may take to end after its input did, and its output to end after it did.
	grace = 5 * time.Second
	// strayGrace is how long what it left behind may hold its output open.
	strayGrace = time.Second
)

var errTooLong = fmt.Errorf("it writes a line longer than %d bytes", MaxLine)

func startProcess(command []string, log *slog.Logger) (*process, error) {
	p := &process{
		command: exec.Command(command[0], command[1:]...), lines: make(chan []byte), stopped: make(chan struct{}), gone: make(chan struct{}),
	}
	ownGroup(p.command)
	var files [6]*os.File
	closeAll := func() {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}
	for i := 0; i < len(files); i += 2 {
		var err error
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			closeAll()
			return nil, fmt.Errorf("start: %w", err)
		}
	}
	output, words := files[2], files[4]
	p.input = files[1]
	p.command.Stdin, p.command.Stdout, p.command.Stderr = files[0], files[3], files[5]
	if err := p.command.Start(); err != nil {
		closeAll()
		return nil, fmt.Errorf("start: %w", err)
	}
	for _, i := range []int{0, 3, 5} { // which are its own
		_ = files[i].Close()
	}
	read := make(chan error, 1)
	heard := make(chan struct{})
	go func() { read <- p.read(output) }()
	go func() { defer close(heard); p.last.listen(words, log) }()
	go p.wait(output, words, read, heard)
	return p, nil
}

// wait waits for the end of the process, ends its group and says why no more lines come.
func (p *process) wait(output, words *os.File, read <-chan error, heard <-chan struct{}) {
	err := p.command.Wait()
	killGroup(p.command)
	stray := time.AfterFunc(strayGrace, func() { // what left the group may hold them open
		_ = output.Close()
		_ = words.Close()
	})
	readError := <-read
	<-heard
	stray.Stop()
	_ = output.Close()
	_ = words.Close()
	_ = p.input.Close()
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	p.why = fmt.Errorf("it ended: %s%s", how, p.last.quote())
	if readError != nil {
		p.why = readError
	}
	close(p.gone)
	close(p.lines)
}

// read hands on its lines until the end.
func (p *process) read(from io.Reader) error {
	r := bufio.NewReader(from)
	for {
		line, err := readLine(r)
		switch {
		case errors.Is(err, errTooLong):
			p.kill()
			return err
		case err != nil:
			return nil
		}
		select {
		case p.lines <- line:
		case <-p.stopped:
		}
	}
}

// readLine reads a line, without its end. What is cut off by the end of the input is none.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxLine:
			return nil, errTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		}
		return line[:len(line)-1], nil
	}
}

// exchange writes a line and waits for one.
func (p *process) exchange(ctx context.Context, line []byte, limit time.Duration) ([]byte, error) {
	select {
	case early, ok := <-p.lines:
		if !ok {
			return nil, p.why
		}
		return nil, fmt.Errorf("it writes %s without having been asked", shown(early))
	default:
	}
	go func() { _, _ = p.input.Write(line) }() // it may not read; what goes wrong shows in the answer, and the end of the process ends this
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case answer, ok := <-p.lines:
		if !ok {
			return nil, p.why
		}
		return answer, nil
	case <-timer.C:
		return nil, fmt.Errorf("it does not answer in %v%s", limit, p.last.quote())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// kill ends the group. It does not wait.
func (p *process) kill() {
	p.stop.Do(func() { close(p.stopped) })
	select {
	case <-p.gone: // its number may be that of another by now
	default:
		killGroup(p.command)
	}
}

// close lets it end by itself and ends it if it does not.
func (p *process) close() {
	p.stop.Do(func() { close(p.stopped) })
	_ = p.input.Close()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.gone:
	case <-timer.C:
		p.kill()
		<-p.gone
	}
}

// lastWords keeps the last lines that a process wrote to its standard error.
type lastWords struct {
	mutex sync.Mutex
	lines []string
}

const (
	mostLastWords  = 5
	longestComment = 500 // bytes
)

// listen logs each line.
func (l *lastWords) listen(from io.Reader, log *slog.Logger) {
	r := bufio.NewReader(from)
	for {
		var line []byte
		var err error
		for more := true; more; {
			var part []byte
			part, more, err = r.ReadLine()
			line = append(line, part[:min(len(part), longestComment-len(line))]...)
		}
		if err != nil {
			return
		}
		text := strings.ToValidUTF8(string(line), "?")
		log.Info("a search says", "line", text)
		l.mutex.Lock()
		l.lines = append(l.lines, text)
		l.lines = slices.Delete(l.lines, 0, max(len(l.lines)-mostLastWords, 0))
		l.mutex.Unlock()
	}
}

// quote is what an error says of them.
func (l *lastWords) quote() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.lines) == 0 {
		return ""
	}
	return fmt.Sprintf("; its last output: %q", strings.Join(l.lines, "\n"))
}
