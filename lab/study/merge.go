package study

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
)

// Merge takes what other folders keep of the runs of a study and writes its tables. It runs nothing: where seeds are
// added until intervals are narrow, those of the first look that are missing are missing. So is a run whose input file is here
// with another content; where runs read one file with several, there is no table to write, nor where a folder keeps runs of other
// studies only.
func Merge(ctx context.Context, s *Study, o Options, from []string) (*Result, error) {
	return s.look(ctx, &o, func(kept *store, runs []*Run, result *Result) error {
		kept.unchanged = true
		return result.take(s, kept, runs, from)
	})
}

// take takes what is not kept of runs from where it is.
func (r *Result) take(s *Study, kept *store, runs []*Run, from []string) error {
	if err := s.belong(runs, from); err != nil {
		return err
	}
	folders := []*store{kept}
	for _, folder := range from {
		folders = append(folders, &store{dir: folder})
	}
	chosen := make([]*store, len(runs))
	read := map[string]seen{} // by input file
	for i, run := range runs {
		folder, record := kept.choose(folders, run.Hash)
		if record == nil {
			continue
		}
		if chosen[i] = folder; folder == kept && record.Outcome != Failed && !kept.changed(record) && r.counts(run.Hash) {
			r.Reused++
		}
		for _, in := range record.Inputs {
			other, again := read[in.File]
			if again && other.sha256 != in.SHA256 {
				return s.problem("", fmt.Sprintf("%q was not the same file for all runs: runs in %s read it with SHA-256 %.12s, runs in %s with %.12s",
					in.File, other.folder, other.sha256, folder.dir, in.SHA256), "run the shards again with one content of it")
			}
			read[in.File] = seen{folder.dir, in.SHA256}
		}
	}
	for i, run := range runs {
		if chosen[i] == nil || chosen[i] == kept {
			continue
		}
		taken, err := kept.take(chosen[i], run.Hash)
		if err != nil {
			return err
		}
		if taken && r.counts(run.Hash) {
			r.Ran++
		}
	}
	return nil
}

// belong refuses folders that keep runs, none of which is one of the study.
func (s *Study) belong(runs []*Run, from []string) error {
	var found core.Diagnostics
	for _, folder := range from {
		other := &store{dir: folder}
		names, err := other.names()
		if err != nil {
			found = append(found, core.Diagnostic{Path: folder, Summary: "keeps no runs of a study", Hint: "give a folder that quartet bench wrote"})
			continue
		}
		kept := slices.DeleteFunc(names, func(name string) bool { return filepath.Ext(name) != ".json" })
		if len(kept) > 0 && !slices.ContainsFunc(runs, func(r *Run) bool { _, of := slices.BinarySearch(kept, r.Hash+".json"); return of }) {
			found = append(found, core.Diagnostic{
				Path: folder, Summary: fmt.Sprintf("keeps %d runs, and none is of study %q", len(kept), s.Name),
				Hint: "give the folder of a shard of this study, which the same version of quartet ran",
			})
		}
	}
	return found.Err()
}

// seen is what an input file was in a folder.
type seen struct{ folder, sha256 string }

// choose is the first folder with a record of a run to take: rather one that did not fail, and of those rather one whose
// input files are not different here.
func (s *store) choose(folders []*store, hash string) (folder *store, record *Record) {
	best := 0
	for _, f := range folders {
		r := f.read(hash)
		rank := 0
		switch {
		case r == nil:
		case r.Outcome == Failed:
			rank = 1
		case s.changed(r):
			rank = 2
		default:
			rank = 3
		}
		if rank > best {
			best, folder, record = rank, f, r
		}
	}
	return folder, record
}

// changed reports whether an input file of a record is here with another content.
func (s *store) changed(r *Record) bool {
	return slices.ContainsFunc(r.Inputs, func(in quartet.Digest) bool {
		digest := s.digest(in.File)
		return digest != "" && digest != in.SHA256
	})
}
