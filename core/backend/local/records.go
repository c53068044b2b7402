package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	bolt "go.etcd.io/bbolt"
)

func makeBuckets(tx *bolt.Tx) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

func checkRecords(tx *bolt.Tx) error {
	found := 0
	for _, name := range buckets {
		bucket := tx.Bucket([]byte(name))
		if bucket == nil {
			return fmt.Errorf("bucket %q is missing", name)
		}
		if err := bucket.ForEach(func(k, sealed []byte) error {
			if string(k) != countKey {
				found++
			}
			_, err := unseal(name, k, sealed)
			return err
		}); err != nil {
			return err
		}
	}
	if recorded, err := (records{tx}).count(); err != nil || recorded != found {
		return errors.Join(err, fmt.Errorf("it has %d records of %d", found, recorded))
	}
	return nil
}

// pageFill is how full a page is left when it is split: nearly all records are added behind the others.
const pageFill = 0.95

// records are those of a transaction. Each is kept behind a checksum of where it belongs and what it says.
type records struct{ tx *bolt.Tx }

func (r records) bucket(name string) (*bolt.Bucket, error) {
	if b := r.tx.Bucket([]byte(name)); b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("bucket %q is missing", name)
}

// Get returns a record.
func (r records) Get(bucket, key string) ([]byte, error) {
	b, err := r.bucket(bucket)
	if err != nil {
		return nil, err
	}
	sealed := b.Get([]byte(key))
	if sealed == nil {
		return nil, nil
	}
	return unseal(bucket, []byte(key), sealed)
}

// Each walks through a bucket.
func (r records) Each(bucket string, do func(key string, record []byte) error) error {
	b, err := r.bucket(bucket)
	if err != nil {
		return err
	}
	return b.ForEach(func(k, sealed []byte) error {
		text, err := unseal(bucket, k, sealed)
		if err != nil || bucket == metaBucket && string(k) == countKey {
			return err
		}
		return do(string(k), text)
	})
}

// Put writes a record.
func (r records) Put(bucket, key string, record []byte) error {
	b, err := r.bucket(bucket)
	if err != nil {
		return err
	}
	b.FillPercent = pageFill
	if b.Get([]byte(key)) == nil {
		n, err := r.count()
		if err != nil {
			return err
		}
		counted := seal(metaBucket, []byte(countKey), strconv.AppendInt(nil, int64(n)+1, 10))
		if err := r.tx.Bucket([]byte(metaBucket)).Put([]byte(countKey), counted); err != nil {
			return err
		}
	}
	return b.Put([]byte(key), seal(bucket, []byte(key), record))
}

// Clear removes every record.
func (r records) Clear() error {
	for _, name := range buckets {
		if err := r.tx.DeleteBucket([]byte(name)); err != nil {
			return err
		}
	}
	return makeBuckets(r.tx)
}

// Release ends the transaction.
func (r records) Release() error { return r.tx.Rollback() }

// countKey is that of the number of records, in which it is not counted.
const countKey = "count"

func (r records) count() (n int, err error) {
	text, err := r.Get(metaBucket, countKey)
	if err != nil || text == nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sumSize = 4

func sum(bucket string, key, text []byte) uint32 {
	s := crc32.Checksum([]byte(bucket), castagnoli)
	s = crc32.Update(s, castagnoli, append([]byte{0}, key...))
	return crc32.Update(s, castagnoli, append([]byte{0}, text...))
}

func seal(bucket string, key, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, sum(bucket, key, text)), text...)
}

func unseal(bucket string, key, sealed []byte) ([]byte, error) {
	if len(sealed) < sumSize || binary.BigEndian.Uint32(sealed) != sum(bucket, key, sealed[sumSize:]) {
		return nil, fmt.Errorf("record %q of %q is not as it was written", key, bucket)
	}
	return sealed[sumSize:], nil
}
