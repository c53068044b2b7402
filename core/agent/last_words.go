package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LastWordsFile is the file in the rendezvous folder of a run in which rank 0 leaves what it said last, when it ends: a line of the protocol. The scheduler may have been away
// then, or killed before it had recorded what it heard.
const LastWordsFile = ".quartet-last-words"

// LastWords are those that a run left; false where it left none, or none that make sense.
func LastWords(rendezvous string) (words FromJob, left bool, err error) {
	f, err := os.Open(filepath.Join(rendezvous, LastWordsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return words, false, nil
	}
	if err != nil {
		return words, false, err
	}
	defer f.Close()
	lines := newReader[FromJob](f)
	if words, err = lines.next(); err != nil {
		return FromJob{}, false, fmt.Errorf("last words: %w", err)
	}
	return words, true, nil
}

func writeLastWords(rendezvous string, words FromJob) error {
	text, err := json.Marshal(&words)
	if err != nil {
		return err
	}
	path := filepath.Join(rendezvous, LastWordsFile)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
