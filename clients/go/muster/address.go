package muster

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// The longest path of a socket in Linux, without its NUL.
const maxSocketPathBytes = 107

// An address is that of a broker, parsed.
type address struct {
	text      string
	network   string // "unix" or "tcp"
	target    string // a path, or HOST:PORT
	url       string // the base of each call's URL
	host      string // the name in the broker's certificate
	tls       bool
	connect   bool // uses the Connect protocol instead of gRPC
	staysHere bool // on this machine, so that nothing leaves it
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
var portNumber = regexp.MustCompile(`^[0-9]{1,5}$`)

// parseAddress reads unix:PATH, HOST:PORT, tls:HOST:PORT, http://HOST:PORT or https://HOST:PORT.
func parseAddress(text string) (address, error) {
	if path, found := strings.CutPrefix(text, "unix:"); found {
		if strings.HasPrefix(path, "///") {
			path = path[2:]
		}
		if path == "" {
			return address{}, badAddress(text, "the path is empty")
		}
		if len(path) > maxSocketPathBytes {
			return address{}, badAddress(text, fmt.Sprintf("the path has %d bytes and Linux allows %d for a socket", len(path),
				maxSocketPathBytes))
		}
		return address{text: text, network: "unix", target: path, url: "http://localhost", staysHere: true}, nil
	}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		return parseURL(text)
	}
	place, isTLS := strings.CutPrefix(text, "tls:")
	host, port, err := parseHostPort(text, place)
	if err != nil {
		return address{}, err
	}
	target := net.JoinHostPort(host, port)
	scheme := map[bool]string{false: "http://", true: "https://"}[isTLS]
	return address{text: text, network: "tcp", target: target, url: scheme + target, host: host, tls: isTLS,
		staysHere: isLoopback(host)}, nil
}

func parseURL(text string) (address, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" {
		return address{}, badAddress(text, "it is no URL with a host")
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return address{}, badAddress(text, "a URL has no user, no query and no fragment here")
	}
	port := parsed.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[parsed.Scheme]
	}
	host := parsed.Hostname()
	return address{text: text, network: "tcp", target: net.JoinHostPort(host, port), url: strings.TrimRight(text, "/"), host: host,
		tls: parsed.Scheme == "https", connect: true, staysHere: isLoopback(host)}, nil
}

func parseHostPort(text, place string) (host, port string, err error) {
	if strings.HasPrefix(place, "/") || strings.HasPrefix(place, "./") {
		return "", "", badAddress(text, "there is no port; did you mean unix:"+place+"?")
	}
	at := strings.LastIndex(place, ":")
	if at < 0 {
		return "", "", badAddress(text, "there is no port")
	}
	host, port = place[:at], place[at+1:]
	number, err := strconv.Atoi(port)
	if !portNumber.MatchString(port) || err != nil || number < 1 || number > 65535 {
		return "", "", badAddress(text, fmt.Sprintf("%q is not a port", port))
	}
	if host == "" {
		return "", "", badAddress(text, "there is no host")
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
		if ip := net.ParseIP(host); ip == nil || !strings.Contains(host, ":") {
			return "", "", badAddress(text, fmt.Sprintf("%q is not an IPv6 address", host))
		}
		return host, port, nil
	}
	if strings.Contains(host, ":") {
		return "", "", badAddress(text, "an IPv6 address goes in brackets, as in [::1]:7070")
	}
	if !hostName.MatchString(host) {
		return "", "", badAddress(text, fmt.Sprintf("%q is not a host name", host))
	}
	return host, port, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func badAddress(text, problem string) error {
	return refused(ErrConfiguration, fmt.Sprintf("broker address %q: %s; write unix:PATH, HOST:PORT, tls:HOST:PORT, "+
		"http://HOST:PORT or https://HOST:PORT, e.g. unix:/var/lib/muster/broker.sock or 127.0.0.1:7070", text, problem))
}
