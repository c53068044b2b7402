package workload

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/internal/interrupt"
)

// TraceConfig is the Config of a source that reads one trace file.
type TraceConfig struct {
	// Path: file to read.
	Path string `config:"path" required:"true" doc:"File to read; one compressed by gzip is recognised by its content."`
}

// Validate reports an empty path.
func (c TraceConfig) Validate() error {
	if c.Path == "" {
		return errors.New("path: is empty")
	}
	return nil
}

// traceFile is a source that reads one file.
type traceFile struct {
	path string
	read func(*input) (*Workload, error)
}

func newTraceFactory(info core.Info, read func(*input) (*Workload, error)) core.Factory[Source] {
	return core.NewFactory(info, TraceConfig{}, func(c TraceConfig, _ core.Settings) (Source, error) {
		return traceFile{path: c.Path, read: read}, nil
	})
}

func (f traceFile) Load(ctx context.Context) (*Workload, error) {
	in, err := openInput(ctx, f.path)
	if err != nil {
		return nil, err
	}
	return f.read(in)
}

// input is a file that is being read.
type input struct {
	Input
	io.Reader // the content, decompressed

	lines int // of the content, so that jobs are laid out once; 0 when it is compressed
}

func openInput(ctx context.Context, path string) (*input, error) {
	disk, err := interrupt.Call(ctx, func() ([]byte, error) { return inputfile.Read(path, inputfile.Table) })
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	if err != nil {
		return nil, cannotRead(path, err)
	}
	return newInput(path, disk)
}

// newInput takes the bytes as they lie on disk.
func newInput(path string, disk []byte) (*input, error) {
	sum := sha256.Sum256(disk)
	in := &input{Input: Input{Path: path, SHA256: hex.EncodeToString(sum[:])}, Reader: bytes.NewReader(disk)}
	if gzipMagic := []byte{0x1f, 0x8b}; bytes.HasPrefix(disk, gzipMagic) {
		content, err := gzip.NewReader(in.Reader)
		if err != nil {
			return nil, cannotRead(path, cutShort(err))
		}
		in.Reader = &gunzipped{content, inputfile.Table}
	} else {
		in.lines = bytes.Count(disk, []byte("\n"))
	}
	return in, nil
}

// gunzipped is decompressed content whose end may be missing.
type gunzipped struct {
	content io.Reader
	left    int64 // bytes that may follow
}

func (g *gunzipped) Read(p []byte) (int, error) {
	n, err := g.content.Read(p)
	if g.left -= int64(n); g.left < 0 {
		return 0, fmt.Errorf("the file holds more than %d MiB, decompressed", inputfile.Table>>20)
	}
	if err == io.EOF {
		return n, err
	}
	return n, cutShort(err)
}

// cutShort words the error of a compressed file that ends too early.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut short: its gzip data has no end")
	}
	return err
}

// cannotRead says why a file cannot be read, with its name once.
func cannotRead(path string, err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	return core.Diagnostics{{Position: core.Position{File: path}, Summary: fmt.Sprintf("cannot be read: %v", err)}}
}
