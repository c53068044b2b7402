package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// pack is a package with its syntax and types.
type pack struct {
	path, dir string
	tested    bool // it has tests of its own
	files     []*source
	chosen    []*mutant // to try
	info      types.Info
	fset      *token.FileSet
}

// source is a file of a package.
type source struct {
	path string
	text []byte
	ast  *ast.File
}

// load reads the packages that match patterns, and checks their types with the export data that the compiler leaves.
func load(patterns []string) ([]*pack, error) {
	listed, err := goList(append([]string{"-export", "-deps", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Export,DepOnly"}, patterns...))
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range listed {
		exports[l.ImportPath] = l.Export
	}
	var packages []*pack
	for _, l := range listed {
		if l.DepOnly || len(l.GoFiles) == 0 {
			continue
		}
		p, err := check(l, exports)
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

type listing struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	TestGoFiles             []string
	XTestGoFiles            []string
	DepOnly                 bool
}

func goList(args []string) ([]listing, error) {
	c := exec.Command("go", append([]string{"list"}, args...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []listing
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listing
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, l)
	}
}

func check(l listing, exports map[string]string) (*pack, error) {
	p := &pack{path: l.ImportPath, dir: l.Dir, tested: len(l.TestGoFiles)+len(l.XTestGoFiles) > 0, fset: token.NewFileSet()}
	var files []*ast.File
	for _, name := range l.GoFiles {
		path := filepath.Join(l.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(p.fset, path, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, &source{path: path, text: text, ast: file})
		files = append(files, file)
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	p.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(p.fset, "gc", lookup)}
	if _, err := config.Check(l.ImportPath, p.fset, files, &p.info); err != nil {
		return nil, err
	}
	return p, nil
}
