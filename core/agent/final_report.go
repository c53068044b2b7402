package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// FinalReportFile is the name of the file in the rendezvous folder of a run in which rank 0 leaves its final report when it ends:
// the latest message of each kind, as one line of the protocol. The scheduler reads it because it may have been away when they
// were sent, or was killed before it recorded them. The name is that of earlier versions, whose trainings may still run.
const FinalReportFile = ".quartet-last-words"

// FinalReport returns the final report in the rendezvous folder of a run, and whether there is one that can be read.
func FinalReport(rendezvous string) (report FromJob, left bool, err error) {
	f, err := inputfile.Open(filepath.Join(rendezvous, FinalReportFile))
	if errors.Is(err, fs.ErrNotExist) {
		return report, false, nil
	}
	if err != nil {
		return report, false, err
	}
	defer f.Close()
	lines := newReader[FromJob](f)
	if report, err = lines.next(); err != nil {
		return FromJob{}, false, fmt.Errorf("final report: %w", err)
	}
	return report, true, nil
}

// writeFinalReport writes the file at once or not at all.
func writeFinalReport(rendezvous string, report FromJob) error {
	text, err := json.Marshal(&report)
	if err != nil {
		return err
	}
	path := filepath.Join(rendezvous, FinalReportFile)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
