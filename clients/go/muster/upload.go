package muster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	musterv1 "muster.dev/api/muster/v1"
)

const (
	maxDigestsPerRequest = 10_000
	// A file that changes while it is read is read at most this often.
	triesOfChangingFiles = 3
	// Over the Connect protocol one call takes 16 MiB; this leaves some room for framing.
	maxWebUploadBytes = 15 << 20
	// The head of a file, and the framing of its first chunk.
	parcelFraming = 128
)

// A job that is about to be submitted.
type planned struct {
	spec  *musterv1.JobSpec
	trees []*localTree
}

// prepare makes specs, and reads the files that go along; it sends nothing but a question for the broker's bound.
func (c *Client) prepare(ctx context.Context, several []Job) ([]planned, error) {
	made := make([]planned, len(several))
	brings := false
	for at, job := range several {
		spec, err := job.Message()
		if err != nil {
			return nil, err
		}
		made[at].spec = spec
		brings = brings || len(job.uploads()) > 0
	}
	if !brings {
		return made, nil
	}
	bound, err := call(ctx, c, c.services.files.FindMissingFiles, &musterv1.FindMissingFilesRequest{}, c.patience.call)
	if err != nil {
		return nil, err
	}
	known := map[[3]string]*localTree{}
	for at, job := range several {
		if err := made[at].take(job.uploads(), bound.GetMaxJobBytes(), known); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func (p *planned) take(all []wanted, bound uint64, known map[[3]string]*localTree) error {
	left := bound
	for _, one := range all {
		directory, name, err := layout(one.path, one.place)
		if err != nil {
			return err
		}
		key := [3]string{one.path, name, map[bool]string{true: "", false: "below"}[one.place == ""]}
		if known[key] == nil {
			for tried := 1; ; tried++ {
				known[key], err = readTree(one.path, left, one.place == "", name)
				if err == nil || !isConflict(err) || tried == triesOfChangingFiles {
					break
				}
			}
			if err != nil {
				return err
			}
		}
		tree := known[key]
		if tree.tree.GetTotalBytes() > left {
			return &Error{Message: fmt.Sprintf("with %s the job brings along more than %d bytes of files; %s", one.path, bound, remedy),
				Code: "INVALID_ARGUMENT", kind: ErrBadRequest}
		}
		left -= tree.tree.GetTotalBytes()
		p.trees = append(p.trees, tree)
		p.spec.Uploads = append(p.spec.Uploads, &musterv1.Upload{TreeSha256: tree.sha256, Path: directory})
	}
	return nil
}

// A file to send, by its digest.
type parcel struct {
	size uint64
	data []byte // the bytes, or else
	path string // the file that has them
}

func (p parcel) name() string {
	if p.path == "" {
		return "the list of files"
	}
	return p.path
}

// sendTrees sends what the broker lacks of the trees, or of the lists of files alone.
func (c *Client) sendTrees(ctx context.Context, all []planned, listsAlone bool) error {
	parcels := map[string]parcel{}
	for _, job := range all {
		for _, tree := range job.trees {
			parcels[tree.sha256] = parcel{size: uint64(len(tree.data)), data: tree.data}
			if listsAlone {
				continue
			}
			for sha, size := range tree.sizes() {
				if path, is := tree.sources[sha]; is {
					parcels[sha] = parcel{size: size, path: path}
				}
			}
		}
	}
	digests := slices.Sorted(maps.Keys(parcels))
	pauses, since := newBackoff(maxStreamBackoff), time.Now()
	for {
		missing, err := c.missing(ctx, digests)
		if err != nil || len(missing) == 0 {
			return err
		}
		if len(missing) < len(digests) {
			// The broker got something since the last try.
			since = time.Now()
		}
		digests = missing
		calls, err := c.batches(missing, parcels)
		if err != nil {
			return err
		}
		for at := 0; err == nil && at < len(calls); at++ {
			err = c.upload(ctx, calls[at], parcels)
		}
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		failure := fromConnect(err)
		pause := pauses.pause(failure.RetryAfter)
		if !failure.mayPass() || time.Since(since)+pause >= c.patience.of(failure, c.patience.stream) {
			return c.patience.explain(failure)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// batches splits an upload into the calls that it needs: several over the Connect protocol, otherwise one.
func (c *Client) batches(digests []string, parcels map[string]parcel) ([][]string, error) {
	if !c.config.address.connect {
		return [][]string{digests}, nil
	}
	var made [][]string
	left := uint64(0)
	for _, sha := range digests {
		bytes := parcels[sha].size + parcelFraming
		if bytes > maxWebUploadBytes {
			return nil, refused(ErrConfiguration, fmt.Sprintf("%s has %d bytes, and a file that goes along through %s has at most %d: "+
				"use unix:PATH, HOST:PORT or tls:HOST:PORT", parcels[sha].name(), parcels[sha].size, c.config.address.text,
				maxWebUploadBytes-parcelFraming))
		}
		if bytes > left {
			made = append(made, nil)
			left = maxWebUploadBytes
		}
		left -= bytes
		made[len(made)-1] = append(made[len(made)-1], sha)
	}
	return made, nil
}

func (c *Client) missing(ctx context.Context, digests []string) ([]string, error) {
	var found []string
	for part := range slices.Chunk(digests, maxDigestsPerRequest) {
		answer, err := call(ctx, c, c.services.files.FindMissingFiles, &musterv1.FindMissingFilesRequest{Sha256: part}, c.patience.call)
		if err != nil {
			return nil, err
		}
		found = append(found, answer.GetMissingSha256()...)
	}
	return found, nil
}

// upload makes one attempt.
func (c *Client) upload(ctx context.Context, digests []string, parcels map[string]parcel) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := c.services.files.UploadFiles(ctx)
	authorization, err := c.config.authorization()
	if err != nil {
		return err
	}
	if authorization != "" {
		stream.RequestHeader().Set("Authorization", authorization)
	}
	for _, sha := range digests {
		err := sendParcel(stream.Send, sha, parcels[sha])
		if errors.Is(err, io.EOF) {
			break // the broker has answered before it had all
		}
		if err != nil {
			return err
		}
	}
	_, err = stream.CloseAndReceive()
	return err
}

// sendParcel sends a head and the bytes. A file that has changed ends it with a conflict.
func sendParcel(send func(*musterv1.UploadFilesRequest) error, sha string, one parcel) error {
	head := &musterv1.FileHead{Sha256: sha, SizeBytes: one.size}
	if err := send(&musterv1.UploadFilesRequest{Part: &musterv1.UploadFilesRequest_Head{Head: head}}); err != nil {
		return err
	}
	var from io.Reader = bytes.NewReader(one.data)
	if one.path != "" {
		file, err := os.Open(one.path)
		if err != nil {
			return refused(ErrConfiguration, "cannot read "+one.path+": "+withoutPath(err))
		}
		defer file.Close()
		from = file
	}
	for left := one.size; left > 0; {
		chunk := make([]byte, min(left, chunkBytes))
		read, err := io.ReadFull(from, chunk)
		if read == 0 {
			return changed(fmt.Sprintf("%s has changed while it was read", one.path))
		}
		left -= uint64(read)
		part := &musterv1.UploadFilesRequest_Chunk{Chunk: chunk[:read]}
		if sent := send(&musterv1.UploadFilesRequest{Part: part}); sent != nil {
			return sent
		}
		if err != nil && left > 0 {
			return changed(fmt.Sprintf("%s has changed while it was read", one.path))
		}
	}
	return nil
}
