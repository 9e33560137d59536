package muster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	musterv1 "muster.dev/api/muster/v1"
)

type fetchAnswer = func(*connect.ServerStream[musterv1.FetchFilesResponse]) error

func files(entries ...*musterv1.FileTreeEntry) fetchAnswer {
	return func(stream *connect.ServerStream[musterv1.FetchFilesResponse]) error {
		for _, entry := range entries {
			if err := stream.Send(&musterv1.FetchFilesResponse{Piece: &musterv1.FetchFilesResponse_Entry{Entry: entry}}); err != nil {
				return err
			}
		}
		return nil
	}
}

var root = &musterv1.FileTreeEntry{Kind: musterv1.FileKind_FILE_KIND_DIRECTORY}

func TestFilesFromAHostileBrokerStayBelowTheTarget(t *testing.T) {
	file, link := musterv1.FileKind_FILE_KIND_FILE, musterv1.FileKind_FILE_KIND_SYMLINK
	for _, entry := range []*musterv1.FileTreeEntry{
		{Path: []byte("../x"), Kind: file}, {Path: []byte("/tmp/x"), Kind: file}, {Path: []byte("a/../../x"), Kind: file},
		{Path: []byte("link"), Kind: link, LinkTarget: []byte("/etc")}, {Path: []byte("l"), Kind: link, LinkTarget: []byte("../../x")},
	} {
		it := &brokenBroker{fetches: []fetchAnswer{files(root, entry)}}
		target := t.TempDir()
		_, err := it.client(t, Options{}).Fetch(t.Context(), 7, FetchOptions{To: target})
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Error(entry, err)
		}
		if left, _ := os.ReadDir(filepath.Join(target, "results")); len(left) > 0 {
			t.Error(left)
		}
	}
}

// Each of these links stays below the target by its text; the last one goes through the others.
func TestLinksFromAHostileBrokerReplaceNothingOutsideOfTheTarget(t *testing.T) {
	link := func(path, target string) *musterv1.FileTreeEntry {
		return &musterv1.FileTreeEntry{Path: []byte(path), Kind: musterv1.FileKind_FILE_KIND_SYMLINK, LinkTarget: []byte(target)}
	}
	it := &brokenBroker{fetches: []fetchAnswer{files(root, &musterv1.FileTreeEntry{Path: []byte("x"), Kind: musterv1.FileKind_FILE_KIND_DIRECTORY},
		link("x/y", ".."), link("l", "x/y/../.."), link("l/victim", "x"))}}
	outside := t.TempDir()
	target := filepath.Join(outside, "target")
	victim := filepath.Join(outside, "victim")
	if err := errors.Join(os.Mkdir(target, 0o755), os.WriteFile(victim, []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := it.client(t, Options{}).Fetch(t.Context(), 7, FetchOptions{To: target})
	if err == nil || !strings.Contains(err.Error(), "l is a link") {
		t.Error(err)
	}
	if kept, err := os.ReadFile(victim); err != nil || string(kept) != "mine" || isLink(victim) {
		t.Fatal(err, kept)
	}
}

func TestWhatWasAskedForIsAFileOrADirectory(t *testing.T) {
	file := &musterv1.FileTreeEntry{Kind: musterv1.FileKind_FILE_KIND_FILE}
	below := &musterv1.FileTreeEntry{Path: []byte("x"), Kind: musterv1.FileKind_FILE_KIND_FILE}
	link := &musterv1.FileTreeEntry{Kind: musterv1.FileKind_FILE_KIND_SYMLINK, LinkTarget: []byte("x")}
	other := &musterv1.FileTreeEntry{Path: []byte("x"), Kind: 99}
	for _, entries := range [][]*musterv1.FileTreeEntry{{link}, {below}, {file, below}, {root, other}} {
		it := &brokenBroker{fetches: []fetchAnswer{files(entries...)}}
		_, err := it.client(t, Options{}).Fetch(t.Context(), 7, FetchOptions{To: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "is refused") {
			t.Error(entries, err)
		}
	}
}

func TestFilesDoNotFollowLinksThatAreThere(t *testing.T) {
	for _, place := range []string{"results", "results/d"} {
		target, outside := t.TempDir(), t.TempDir()
		link := filepath.Join(target, place)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(outside, link)); err != nil {
			t.Fatal(err)
		}
		it := &brokenBroker{fetches: []fetchAnswer{files(root, &musterv1.FileTreeEntry{Path: []byte("d/x"), Kind: musterv1.FileKind_FILE_KIND_FILE})}}
		_, err := it.client(t, Options{}).Fetch(t.Context(), 7, FetchOptions{To: target})
		if err == nil || !strings.Contains(err.Error(), "is a link") {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(outside); len(left) > 0 {
			t.Fatal(left)
		}
	}
}

func TestAFetchNamesWhatWasNotSent(t *testing.T) {
	leftOut := func(path, why string, code musterv1.FileLeftOutCode) *musterv1.FetchFilesResponse {
		return &musterv1.FetchFilesResponse{Piece: &musterv1.FetchFilesResponse_LeftOut{
			LeftOut: &musterv1.FileLeftOut{Path: []byte(path), Why: why, Code: code}}}
	}
	it := &brokenBroker{fetches: []fetchAnswer{
		func(stream *connect.ServerStream[musterv1.FetchFilesResponse]) error {
			first := &musterv1.FetchFilesResponse{Piece: &musterv1.FetchFilesResponse_Entry{Entry: root}}
			return errors.Join(stream.Send(first),
				stream.Send(leftOut("d/s", "is a socket", musterv1.FileLeftOutCode_FILE_LEFT_OUT_CODE_SPECIAL_FILE)))
		},
		func(stream *connect.ServerStream[musterv1.FetchFilesResponse]) error {
			return stream.Send(leftOut("", "cannot be read", musterv1.FileLeftOutCode_FILE_LEFT_OUT_CODE_UNREADABLE))
		},
	}}
	client, target := it.client(t, Options{}), t.TempDir()
	part, err := client.Fetch(t.Context(), 7, FetchOptions{To: target})
	if err != nil || part.Path != filepath.Join(target, "results") ||
		!slices.Equal(part.LeftOut, []LeftOut{{Path: "d/s", Why: "is a socket", Code: "SPECIAL_FILE"}}) {
		t.Error(part, err)
	}
	none, err := client.Fetch(t.Context(), 7, FetchOptions{To: target})
	if err != nil || none.Path != "" || !slices.Equal(none.LeftOut, []LeftOut{{Why: "cannot be read", Code: "UNREADABLE"}}) {
		t.Error(none, err)
	}
	writer := &treeWriter{}
	for range maxLeftOut {
		if err := writer.take(leftOut("x", "is a socket", 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.take(leftOut("x", "is a socket", 0)); !errors.Is(err, ErrTooMuch) {
		t.Error(err)
	}
}
