package local

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	bolt "go.etcd.io/bbolt"
)

func makeBuckets(tx *bolt.Tx) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return nil
}

func checkRecords(tx *bolt.Tx) error {
	found := 0
	for _, name := range buckets {
		bucket := tx.Bucket(name)
		if bucket == nil {
			return fmt.Errorf("bucket %q is missing", name)
		}
		if err := bucket.ForEach(func(k, sealed []byte) error {
			if string(k) != string(countKey) {
				found++
			}
			_, err := unseal(name, k, sealed)
			return err
		}); err != nil {
			return err
		}
	}
	if recorded, err := count(tx); err != nil || recorded != found {
		return errors.Join(err, fmt.Errorf("it has %d records of %d", found, recorded))
	}
	return nil
}

// pageFill is how full a page is left when it is split: nearly all records are added behind the others.
const pageFill = 0.95

// put writes a record: its text behind a checksum of where it belongs and what it says.
func put(tx *bolt.Tx, bucket, key []byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	b := tx.Bucket(bucket)
	b.FillPercent = pageFill
	if b.Get(key) == nil {
		n, err := count(tx)
		if err != nil {
			return err
		}
		if err := tx.Bucket(metaBucket).Put(countKey, seal(metaBucket, countKey, strconv.AppendInt(nil, int64(n)+1, 10))); err != nil {
			return err
		}
	}
	return b.Put(key, seal(bucket, key, text))
}

// get reads a record, and tells whether it is there.
func get(tx *bolt.Tx, bucket, key []byte, into any) (there bool, err error) {
	sealed := tx.Bucket(bucket).Get(key)
	if sealed == nil {
		return false, nil
	}
	return true, decode(bucket, key, sealed, into)
}

func decode(bucket, key, sealed []byte, into any) error {
	text, err := unseal(bucket, key, sealed)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// countKey is that of the number of records, in which it is not counted.
var countKey = []byte("count")

func count(tx *bolt.Tx) (n int, err error) {
	_, err = get(tx, metaBucket, countKey, &n)
	return n, err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sumSize = 4

func sum(bucket, key, text []byte) uint32 {
	s := crc32.Checksum(bucket, castagnoli)
	s = crc32.Update(s, castagnoli, append([]byte{0}, key...))
	return crc32.Update(s, castagnoli, append([]byte{0}, text...))
}

func seal(bucket, key, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, sum(bucket, key, text)), text...)
}

func unseal(bucket, key, sealed []byte) ([]byte, error) {
	if len(sealed) < sumSize || binary.BigEndian.Uint32(sealed) != sum(bucket, key, sealed[sumSize:]) {
		return nil, fmt.Errorf("record %q of %q is not as it was written", key, bucket)
	}
	return sealed[sumSize:], nil
}
