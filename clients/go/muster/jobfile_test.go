package muster

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// authority makes a CA's file.
func authority(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheCommandThatReadsAJobFileGetsTheCA(t *testing.T) {
	directory := t.TempDir()
	fake := "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"" + directory + "/said\"\necho 7\n"
	if err := os.WriteFile(filepath.Join(directory, "muster"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", directory+":"+os.Getenv("PATH"))
	ca := authority(t)
	client, err := NewClient(Options{Broker: "tls:127.0.0.1:7443", CAFile: ca})
	if err != nil {
		t.Fatal(err)
	}
	for path, file := range map[string]string{"-x.yaml": "./-x.yaml", "x.yaml": "x.yaml", "-": "./-"} {
		made, err := client.SubmitFile(t.Context(), path, RequestID("mine"), Held())
		said, failed := os.ReadFile(filepath.Join(directory, "said"))
		if errors.Join(err, failed) != nil || len(made) != 1 || made[0].ID != 7 {
			t.Fatal(err, failed, made)
		}
		want := []string{"--broker", "tls:127.0.0.1:7443", "--ca-file", ca, "submit", file, "-o", "name", "--request-id", "mine", "--hold"}
		if got := strings.Join(strings.Fields(string(said)), " "); got != strings.Join(want, " ") {
			t.Error(got)
		}
	}
}
