package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/quartet-sched/quartet/core/backend/journal"
)

// The library takes a damaged file at its word: it may claim all memory, never end, or end the process, which nothing
// recovers from. So another process reads the store first.
const (
	checkVariable = "QUARTET_CHECK_STORE" // makes a program that calls KeepIfAsked that process
	checkedFile   = 3                     // its descriptor of the store
	checkTime     = time.Minute
	checkBytes    = 128 << 20 // of memory, and as many again as the store has
	checkStack    = 64 << 20  // a tree of pages is flat, a circle is not
	sound         = "sound"
	otherVersion  = 3 // exit code: the store is of another version, whose record of the run is put out
)

var errUnchecked = errors.New("the store cannot be checked")

// checkStore reports what is wrong with a store, whose lock the caller holds and keeps. An empty file is a store to be.
func checkStore(file *os.File) error {
	if info, err := file.Stat(); err != nil || info.Size() == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	runtime.LockOSThread() // a parent's death signal is sent when the thread ends that started the child
	defer runtime.UnlockOSThread()
	c := exec.CommandContext(ctx, "/proc/self/exe")
	c.Args, c.Env, c.Dir, c.ExtraFiles = []string{"quartet-check"}, []string{checkVariable + "=yes"}, "/", []*os.File{file}
	// An interrupt from the terminal is for this process: a child that it ended would be taken for damage.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	said, err := c.Output()
	died, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil && string(said) == sound:
		return nil
	case err == nil:
		return fmt.Errorf("%w: the program does not begin with KeepIfAsked", errUnchecked)
	case !ended:
		return fmt.Errorf("%w: %w", errUnchecked, err)
	case ctx.Err() != nil:
		return fmt.Errorf("its check takes longer than %v", checkTime)
	}
	if died.ExitCode() == otherVersion {
		return journal.CheckVersion(died.Stderr)
	}
	why, _, _ := bytes.Cut(died.Stderr, []byte("\n"))
	if len(why) == 0 {
		return fmt.Errorf("its check ended with %w", died)
	}
	return errors.New(string(why))
}

// checkIfAsked ends the program once it has checked a store, if it was started for that. With syscall.Exit, as os.Exit takes a
// second where the race detector is on.
func checkIfAsked() {
	if os.Getenv(checkVariable) == "" {
		return
	}
	if err := checkWithin(os.NewFile(checkedFile, "store")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(1)
	}
	fmt.Print(sound)
	syscall.Exit(0)
}

// checkWithin checks a store within limits. It leaves it open: to close it is to unlock it.
func checkWithin(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := limitMemory(checkBytes + uint64(info.Size())); err != nil {
		return err
	}
	debug.SetMaxStack(checkStack)
	db, err := openAs(file, false)
	if err != nil {
		return err
	}
	tx, err := db.Begin(true) // only the end of a transaction that may write counts what is free
	if err != nil {
		return err
	}
	if size := tx.Size(); size > info.Size() {
		return fmt.Errorf("the file is cut short: it has %d bytes of %d", info.Size(), size)
	}
	for err := range tx.Check() {
		return err
	}
	free, err := freePages(tx)
	if err != nil {
		return err
	}
	leaveOtherVersion(tx)
	if first, _ := tx.Cursor().First(); first != nil { // else a store whose maker was killed, before it made the buckets
		if err := checkRecords(tx); err != nil {
			return err
		}
	}
	if err := tx.Rollback(); err != nil {
		return err
	}
	if listed := db.Stats().FreePageN; listed != free {
		return fmt.Errorf("%d pages are said to be free, %d of them are there", listed, free)
	}
	return checkHeads(file, db.Info().PageSize)
}

// leaveOtherVersion ends the process where a store is of another version: the rest of it may be as it is to be there.
func leaveOtherVersion(tx *bolt.Tx) {
	meta := tx.Bucket([]byte(metaBucket))
	if meta == nil {
		return
	}
	record := meta.Get([]byte(runKey))
	if journal.CheckVersion(record) != nil {
		_, _ = os.Stderr.Write(record)
		syscall.Exit(otherVersion)
	}
}

func openAs(file *os.File, readOnly bool) (*bolt.DB, error) {
	return bolt.Open(file.Name(), 0, &bolt.Options{
		ReadOnly: readOnly, OpenFile: func(string, int, os.FileMode) (*os.File, error) { return file, nil },
	})
}

// limitMemory ends the process when it takes more memory than now by so much.
func limitMemory(more uint64) error {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var size, resident, shared, code, library, data uint64 // pages
	if _, err := fmt.Sscan(string(text), &size, &resident, &shared, &code, &library, &data); err != nil {
		return err
	}
	most := data*uint64(os.Getpagesize()) + more
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}

// freePages counts the free pages of a store in which every page is free or in use, and finds those that are both: the
// check of the library looks at the first of the pages that belong together.
func freePages(tx *bolt.Tx) (free int, err error) {
	for id := 0; ; id++ {
		page, err := tx.Page(id)
		if page == nil || err != nil {
			return free, err
		}
		if page.Type == freePage {
			free++
			continue
		}
		for range page.OverflowCount {
			id++
			if next, err := tx.Page(id); err != nil || next == nil || next.Type == freePage {
				return 0, errors.Join(err, fmt.Errorf("page %d is in use, and free or not there", id))
			}
		}
	}
}

const freePage = "free"

// checkHeads opens a store with either of its first two pages alone. They take turns as its head: the library does
// without a damaged one, and then tells of an earlier moment.
func checkHeads(file *os.File, pageSize int) error {
	for i := range 2 {
		pages := make([]byte, 2*pageSize)
		if _, err := file.ReadAt(pages[i*pageSize:][:pageSize], int64(i*pageSize)); err != nil {
			return err
		}
		fd, err := unix.MemfdCreate("head", unix.MFD_CLOEXEC)
		if err != nil {
			return err
		}
		alone := os.NewFile(uintptr(fd), "head")
		if _, err := alone.Write(pages); err != nil {
			return err
		}
		db, err := openAs(alone, true)
		if err != nil {
			return fmt.Errorf("head %d: %w", i, err)
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
	return nil
}
