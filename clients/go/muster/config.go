package muster

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	// A larger file is neither a configuration, a token nor a certificate.
	maxFileBytes = 1 << 20
	// A login's token is not used if less than this is left of its life.
	loginMargin        = 5 * time.Second
	tokenAlphabet      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	tokenPrefix        = "mst_"
	tokenCharacters    = 40
	tokenSumCharacters = 6
)

// The end of the search for the broker and for how to speak with it.
type config struct {
	address address
	origin  string                 // "named by MUSTER_BROKER", for errors
	token   func() (string, error) // the token for a call made now; empty: none
	context string
	ca      []byte // PEM; empty: those that the system trusts
	caFile  string // where it is; empty: likewise
}

// The sources of settings: the arguments, the environment, and the user's files.
type settings struct {
	options Options
	env     func(string) string
}

type contextEntry struct {
	Broker    string `yaml:"broker"`
	TokenFile string `yaml:"token_file"`
	CAFile    string `yaml:"ca_file"`
}

// load finds the broker. The first that is given counts: Options.Broker, Options.Context, MUSTER_BROKER, MUSTER_CONTEXT, the
// current context, `broker` of config.yaml, the socket of the user's own broker. Token: the options, MUSTER_TOKEN,
// MUSTER_TOKEN_FILE, the context's token file, the context's login.
func load(options Options, env func(string) string) (*config, error) {
	s := &settings{options, env}
	made := &config{origin: "given as Options.Broker"}
	var chosen contextEntry
	broker := options.Broker
	if broker == "" {
		var err error
		if options.Context != "" || env("MUSTER_BROKER") == "" {
			if made.context, chosen, err = s.findContext(); err != nil {
				return nil, err
			}
		}
		if broker, made.origin, err = s.findBroker(made.context, chosen); err != nil {
			return nil, err
		}
	}
	var err error
	if made.address, err = parseAddress(broker); err != nil {
		return nil, err
	}
	if made.token, err = s.findToken(made.context, chosen, broker); err != nil {
		return nil, err
	}
	made.ca, made.caFile, err = s.findCA(made.address, chosen)
	return made, err
}

func (s *settings) directory(variable, inHome string) string {
	if xdg := s.env(variable); strings.HasPrefix(xdg, "/") {
		return filepath.Join(xdg, "muster")
	}
	if home := s.env("HOME"); home != "" {
		return filepath.Join(home, inHome, "muster")
	}
	return ""
}

func (s *settings) configuration() string { return s.directory("XDG_CONFIG_HOME", ".config") }

func readSmall(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, refused(ErrConfiguration, "cannot read "+path+": "+withoutPath(err))
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, refused(ErrConfiguration, "cannot read "+path+": "+withoutPath(err))
	}
	if len(data) > maxFileBytes {
		return nil, refused(ErrConfiguration, fmt.Sprintf("%s has more than %d bytes", path, maxFileBytes))
	}
	return data, nil
}

func withoutPath(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}

// readYAML reads a file of the configuration directory; a missing file counts as empty.
func (s *settings) readYAML(name string, into any) (string, error) {
	if s.configuration() == "" {
		return "", nil
	}
	path := filepath.Join(s.configuration(), name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	data, err := readSmall(path)
	if err != nil {
		return path, err
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		return path, refused(ErrConfiguration, path+": "+err.Error())
	}
	return path, nil
}

// findContext returns the context of the name that was asked for, or the current one; an empty name: there is none.
func (s *settings) findContext() (string, contextEntry, error) {
	var file struct {
		Current  string                  `yaml:"current"`
		Contexts map[string]contextEntry `yaml:"contexts"`
	}
	if _, err := s.readYAML("contexts.yaml", &file); err != nil {
		return "", contextEntry{}, err
	}
	name := s.options.Context
	if name == "" {
		name = s.env("MUSTER_CONTEXT")
	}
	if name == "" {
		name = file.Current
	}
	if name == "" {
		return "", contextEntry{}, nil
	}
	if found, ok := file.Contexts[name]; ok {
		return name, found, nil
	}
	known := "muster context set NAME --broker ADDRESS makes one"
	if len(file.Contexts) > 0 {
		names := make([]string, 0, len(file.Contexts))
		for one := range file.Contexts {
			names = append(names, one)
		}
		slices.Sort(names)
		known = "there are: " + strings.Join(names, ", ")
	}
	return "", contextEntry{}, refused(ErrConfiguration, fmt.Sprintf("there is no context %q; %s", name, known))
}

func (s *settings) findBroker(name string, chosen contextEntry) (broker, origin string, err error) {
	if name != "" {
		if chosen.Broker == "" {
			return "", "", refused(ErrConfiguration, fmt.Sprintf("the context %q has no broker; muster context set %s --broker ADDRESS",
				name, name))
		}
		return chosen.Broker, fmt.Sprintf("named by the context %q", name), nil
	}
	if broker = s.env("MUSTER_BROKER"); broker != "" {
		return broker, "named by MUSTER_BROKER", nil
	}
	var file struct {
		Broker string `yaml:"broker"`
	}
	path, err := s.readYAML("config.yaml", &file)
	if err != nil {
		return "", "", err
	}
	if file.Broker != "" {
		return file.Broker, "named in " + path, nil
	}
	state := s.directory("XDG_STATE_HOME", ".local/state")
	if state == "" {
		return "", "", refused(ErrConfiguration, "no broker is named: set Options.Broker or MUSTER_BROKER")
	}
	return "unix:" + state + "/broker.sock", "tried because none is named by Options.Broker, by MUSTER_BROKER or by a context", nil
}

func (s *settings) findToken(name string, chosen contextEntry, broker string) (func() (string, error), error) {
	text, err := "", error(nil)
	switch {
	case s.options.Token != "":
		text, err = checkToken(s.options.Token, "Options.Token")
	case s.options.TokenFile != "":
		text, err = readTokenFile(s.options.TokenFile)
	case s.env("MUSTER_TOKEN") != "":
		text, err = checkToken(s.env("MUSTER_TOKEN"), "MUSTER_TOKEN")
	case s.env("MUSTER_TOKEN_FILE") != "":
		text, err = readTokenFile(s.env("MUSTER_TOKEN_FILE"))
	case chosen.TokenFile != "":
		text, err = readTokenFile(chosen.TokenFile)
	case name != "" && s.configuration() != "":
		sum := sha256.Sum256([]byte(name))
		login := filepath.Join(s.configuration(), "logins", hex.EncodeToString(sum[:])[:32]+".json")
		if _, err := os.Stat(login); err == nil {
			return func() (string, error) { return loginToken(login, broker) }, nil
		}
	}
	return func() (string, error) { return text, nil }, err
}

// findCA reads the CA by which the client knows the broker. A web address needs none: the client then trusts the system's CAs.
func (s *settings) findCA(at address, chosen contextEntry) (ca []byte, path string, err error) {
	path = s.options.CAFile
	if path == "" {
		path = s.env("MUSTER_CA_FILE")
	}
	if path == "" {
		path = chosen.CAFile
	}
	if !at.tls || path == "" && at.connect {
		return nil, "", nil
	}
	if path == "" {
		return nil, "", refused(ErrConfiguration, fmt.Sprintf("broker address %q: it needs the CA by which you know the broker: "+
			"Options.CAFile, MUSTER_CA_FILE or a context; muster token create --bundle on the broker's host makes all that muster "+
			"context import takes", at.text))
	}
	ca, err = readSmall(path)
	if err == nil && !bytes.Contains(ca, []byte("-----BEGIN CERTIFICATE-----")) {
		err = refused(ErrConfiguration, "the CA's file "+path+" has no certificate; it has -----BEGIN CERTIFICATE-----")
	}
	return ca, path, err
}

// checkToken returns the token without blanks around it. The error names the source, and never the token.
func checkToken(text, source string) (string, error) {
	token := strings.TrimSpace(text)
	if len(token) == tokenCharacters && strings.HasPrefix(token, tokenPrefix) {
		body := token[:tokenCharacters-tokenSumCharacters]
		digest := sha256.Sum256([]byte(body))
		number := binary.BigEndian.Uint64(digest[:8])
		sum := make([]byte, 0, tokenSumCharacters)
		for range tokenSumCharacters {
			sum = append(sum, tokenAlphabet[number%uint64(len(tokenAlphabet))])
			number /= uint64(len(tokenAlphabet))
		}
		if string(sum) == token[len(body):] {
			return token, nil
		}
	}
	return "", refused(ErrConfiguration, fmt.Sprintf("%s has no whole token: a token is %q and %d letters and digits; copy it again, "+
		"or make another one", source, tokenPrefix, tokenCharacters-len(tokenPrefix)))
}

// readPrivate reads a file that only its owner may read.
func readPrivate(path, remedy string) ([]byte, error) {
	data, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, refused(ErrConfiguration, "cannot read "+path+": "+withoutPath(err))
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, refused(ErrConfiguration, fmt.Sprintf("%s has mode %04o, so that others may read it; %s", path, mode, remedy))
	}
	return data, nil
}

func readTokenFile(path string) (string, error) {
	data, err := readPrivate(path, "chmod 600 "+path+", and revoke the token if others could use it")
	if err != nil {
		return "", err
	}
	return checkToken(string(data), "the token file "+path)
}

// loginToken reads the ID token of `muster login` again for each call, because `muster` renews it.
func loginToken(path, broker string) (string, error) {
	data, err := readPrivate(path, "muster logout, then muster login")
	if err != nil {
		return "", err
	}
	damaged := refused(ErrConfiguration, "the login "+path+" is damaged; muster login makes another")
	var kept struct {
		Token  string `json:"id_token"`
		Broker string `json:"broker"`
	}
	if json.Unmarshal(data, &kept) != nil {
		return "", damaged
	}
	parts := strings.Split(kept.Token, ".")
	if len(parts) < 2 {
		return "", damaged
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var end struct {
		At float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(claims, &end) != nil || end.At == 0 {
		return "", damaged
	}
	if kept.Broker != broker {
		return "", refused(ErrConfiguration, fmt.Sprintf("the login %s is for the broker %s; muster login makes one for %s", path,
			kept.Broker, broker))
	}
	if time.Now().Add(loginMargin).After(time.UnixMilli(int64(end.At * 1000))) {
		return "", refused(ErrConfiguration, "the login is over; muster whoami renews it, or muster login makes another")
	}
	return kept.Token, nil
}
