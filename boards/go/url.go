// SPDX-License-Identifier: Apache-2.0

package fairlock

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// A server is what a URL says.
type server struct {
	network, address string
	host             string // of the certificate
	isSecure         bool
	user, password   string
	database         uint32
}

// No message shows any of the URL, which may have a password.
func wrongURL(why string) error {
	return errors.New("fairlock: the server's URL is not usable: " + why)
}

func parseURL(text string) (*server, error) {
	scheme := strings.ToLower(strings.SplitN(text, "://", 2)[0])
	for _, kind := range []string{"+sentinel", "+cluster"} {
		if strings.HasSuffix(scheme, kind) {
			return nil, wrongURL("Sentinels and clusters are not supported by this package; name one server: redis://host")
		}
	}
	if strings.Contains(hostOf(text), ",") {
		return nil, wrongURL("it names several hosts")
	}
	parts, err := url.Parse(text)
	if err != nil {
		return nil, wrongURL("it is malformed; in user and password, characters such as / ? # % are written %2F %3F %23 %25")
	}
	s := &server{user: parts.User.Username()}
	s.password, _ = parts.User.Password()
	if strings.Contains(s.user+s.password+parts.Path, "\x00") {
		return nil, wrongURL("there is a NUL in it")
	}
	switch scheme {
	case "unix":
		err = s.parsePath(parts)
	case "redis", "valkey", "rediss", "valkeys":
		s.isSecure = strings.HasSuffix(scheme, "s") && scheme != "redis"
		err = s.parseHost(parts)
	default:
		err = wrongURL("it does not begin with redis://, rediss:// or unix://")
	}
	return s, err
}

// hostOf is what stands where the host does, even where that is no host.
func hostOf(text string) string {
	if at := strings.Index(text, "://"); at >= 0 {
		text = text[at+3:]
	}
	if end := strings.IndexAny(text, "/?#"); end >= 0 {
		text = text[:end]
	}
	return text[strings.LastIndexByte(text, '@')+1:]
}

func (s *server) parseHost(parts *url.URL) error {
	if parts.RawQuery != "" || parts.ForceQuery || parts.Fragment != "" {
		return wrongURL("it has a '?' or '#': a database is written /1, and TLS rediss://")
	}
	if s.host = parts.Hostname(); s.host == "" {
		return wrongURL("it names no host")
	}
	port := parts.Port()
	if port == "" {
		port = "6379"
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return wrongURL("its port is not a number from 1 to 65535")
	}
	s.network, s.address = "tcp", net.JoinHostPort(s.host, port)
	return s.parseDatabase(strings.TrimPrefix(parts.Path, "/"))
}

func (s *server) parsePath(parts *url.URL) error {
	if parts.Host != "" || len(parts.Path) < 2 {
		return wrongURL("it names no absolute path: unix:///run/redis/redis.sock")
	}
	s.network, s.address = "unix", parts.Path
	query, err := url.ParseQuery(parts.RawQuery)
	if err != nil || len(query) > 1 || len(query) == 1 && len(query["db"]) != 1 || parts.Fragment != "" {
		return wrongURL("only ?db=NUMBER may follow its path")
	}
	return s.parseDatabase(query.Get("db"))
}

func (s *server) parseDatabase(text string) error {
	if text == "" {
		return nil
	}
	number, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return wrongURL("its database is not a number")
	}
	s.database = uint32(number)
	return nil
}
