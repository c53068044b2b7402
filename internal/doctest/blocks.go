// Package doctest finds the blocks of code in the pages of the documentation, for tests that run or check them, and tests the guides.
package doctest

import (
	"path/filepath"
	"slices"
	"strings"
)

// Block is a fenced block of a page.
type Block struct {
	Line int    // of the fence, from 1 on
	Info string // behind the fence: language, and how it is tested
	Text string // between the fences
}

// Blocks lists the fenced blocks of a page.
func Blocks(page string) (blocks []Block) {
	var open *Block
	for i, line := range strings.Split(page, "\n") {
		info, fence := strings.CutPrefix(strings.TrimLeft(line, " "), "```")
		switch {
		case fence && open == nil:
			open = &Block{Line: i + 1, Info: strings.TrimSpace(info)}
		case fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		}
	}
	return blocks
}

// Pages lists the pages below a folder of the repository whose blocks are run as they stand. The guides to policies and plugins have tests of
// their own, which build what they show.
func Pages(root string) ([]string, error) {
	list, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	guide := func(path string) bool { return strings.HasPrefix(filepath.Base(path), "write-a-") }
	return append(slices.DeleteFunc(list, guide), filepath.Join(root, "README.md")), err
}
