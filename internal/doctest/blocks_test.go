package doctest

import (
	"slices"
	"testing"
)

func TestBlocks(t *testing.T) {
	page := "text\n```sh no-run: why\na\n\nb\n```\n```\nplain\n```\n    ```sh\n    c\n    ```\n"
	want := []Block{{2, "sh no-run: why", "a\n\nb\n"}, {7, "", "plain\n"}, {10, "sh", "    c\n"}}
	if got := Blocks(page); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
