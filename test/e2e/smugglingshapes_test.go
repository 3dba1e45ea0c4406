package e2e

import "strings"

// shapes are by what they play with. The answers are ours: another proxy may refuse more.
var shapes = []shape{
	// A length and an encoding, and encodings that not everybody sees.
	{
		name: "CL.TE", raw: posted("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") + "X",
		codes: []int{200, 200}, seen: []string{"POST /a", "XGET /end"},
	},
	{
		name: "CL.TE with a request behind", raw: posted("Content-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"},
	},
	{
		name: "TE.CL", raw: posted("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n23\r\n" + smuggled + "\r\n0\r\n\r\n"),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"},
	},
	{name: "TE.TE, the second unknown", raw: posted("Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n\r\n0\r\n\r\n"), codes: []int{501}},
	{name: "TE twice", raw: posted("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), codes: []int{501}},
	{name: "TE with xchunked", raw: posted("Transfer-Encoding: xchunked\r\nContent-Length: 35\r\n\r\n" + smuggled), codes: []int{501}},
	{name: "TE in a list", raw: posted("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"), codes: []int{501}},
	{name: "TE after gzip", raw: posted("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), codes: []int{501}},
	{name: "TE with a space before the colon", raw: posted("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"), codes: []int{400}},
	{
		name: "TE with a tab before its value", raw: posted("Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n"),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"},
	},
	{name: "TE with a vertical tab", raw: posted("Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"), codes: []int{400}},
	{name: "TE in capitals", raw: posted("TRANSFER-ENCODING: CHUNKED\r\n\r\n0\r\n\r\n"), codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"}},
	{name: "TE in quotes", raw: posted("Transfer-Encoding: \"chunked\"\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"), codes: []int{501}},
	{
		name: "TE by another name", raw: posted("Transfer_Encoding: chunked\r\nContent-Length: 35\r\n\r\n" + smuggled),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"},
	},
	{
		name: "TE folded", raw: posted("Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"},
	},
	{
		name: "TE behind a folded field", raw: posted("X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 35\r\n\r\n" + smuggled),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"}, has: []string{"X: a Transfer-Encoding: chunked"},
	},
	{name: "TE behind a bare CR", raw: posted("X: a\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"), codes: []int{400}},
	{name: "TE behind a NUL", raw: posted("X: a\x00\r\nContent-Length: 0\r\n\r\n"), codes: []int{400}},
	{
		name: "TE in HTTP/1.0", raw: "POST /a HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		codes: []int{200}, seen: []string{"POST /a"},
	},

	// Lengths.
	{name: "two lengths that differ", raw: posted("Content-Length: 5\r\nContent-Length: 42\r\n\r\nhello"), codes: []int{400}},
	{
		name: "two lengths that are one", raw: posted("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"},
	},
	{name: "lengths in a list", raw: posted("Content-Length: 5, 5\r\n\r\nhello"), codes: []int{400}},
	{name: "length with a sign", raw: posted("Content-Length: +5\r\n\r\nhello"), codes: []int{400}},
	{name: "length below nothing", raw: posted("Content-Length: -5\r\n\r\nhello"), codes: []int{400}},
	{name: "length in hexadecimal", raw: posted("Content-Length: 0x5\r\n\r\nhello"), codes: []int{400}},
	{name: "length beyond numbers", raw: posted("Content-Length: 18446744073709551621\r\n\r\nhello"), codes: []int{400}},
	{name: "length with a space before the colon", raw: posted("Content-Length : 35\r\n\r\n" + smuggled), codes: []int{400}},
	{
		name: "length of a GET", raw: "GET /a HTTP/1.1\r\n" + host + "Content-Length: 35\r\n\r\n" + smuggled,
		codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"},
	},
	{name: "no length of a GET", raw: "GET /a HTTP/1.1\r\n" + host + "\r\n", codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"}},
	{
		name: "length said to be hop-by-hop", raw: posted("Connection: Content-Length\r\nContent-Length: 35\r\n\r\n" + smuggled),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"},
	},
	{
		name: "TE said to be hop-by-hop", raw: posted("Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n23\r\n" + smuggled + "\r\n0\r\n\r\n"),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"},
	},

	// Lines and chunks.
	{name: "bare LF", raw: "GET /a HTTP/1.1\n" + "Host: x\n\n", codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"}},
	{name: "bare LF in a field", raw: posted("X: a\nContent-Length: 5\r\n\r\nhello"), codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"}},
	{name: "bare LF after a chunk size", raw: posted("Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"), codes: []int{400}},
	{
		name: "chunk extension", raw: posted("Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n"),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"}, hides: []string{"a=b"},
	},
	{name: "chunk extension with a bare LF", raw: posted("Transfer-Encoding: chunked\r\n\r\n5;a\nhello\r\n0\r\n\r\n"), codes: []int{400}},
	{
		name: "chunk extensions without end", raw: posted("Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("a", 40<<10) + "\r\nx\r\n0\r\n\r\n"),
		codes: []int{400},
	},
	{name: "chunk size beyond numbers", raw: posted("Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n"), codes: []int{400}},
	{name: "chunk size with a sign", raw: posted("Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n"), codes: []int{400}},
	{name: "chunk size as 0x5", raw: posted("Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"), codes: []int{400}},
	{name: "chunk longer than it says", raw: posted("Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n"), codes: []int{400}},
	{
		name: "trailer that frames", raw: posted("Transfer-Encoding: chunked\r\nTrailer: Content-Length, X-Sum\r\n\r\n0\r\nContent-Length: 35\r\nX-Sum: 1\r\n\r\n"),
		codes: []int{400},
	},
	{
		name: "trailer that was not said", raw: posted("Transfer-Encoding: chunked\r\n\r\n0\r\nX-User: admin\r\n\r\n"),
		codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"}, hides: []string{"x-user"},
	},

	// Requests where none should be.
	{
		name: "garbage behind a request", raw: "GET /a HTTP/1.1\r\n" + host + "\r\n" + "\x00\x01garbage\r\n\r\n",
		codes: []int{200, 400}, seen: []string{"GET /a"},
	},
	{name: "a request in a body", raw: posted("Content-Length: 35\r\n\r\n" + smuggled), codes: []int{200, 200}, seen: []string{"POST /a", "GET /end"}},
	{
		name: "two requests at once", raw: "GET /a HTTP/1.1\r\n" + host + "\r\nGET /b HTTP/1.1\r\n" + host + "\r\n",
		codes: []int{200, 200, 200}, seen: []string{"GET /a", "GET /b", "GET /end"},
	},

	// Targets, methods and hosts.
	{
		name: "a target with another host", raw: "GET http://evil/a HTTP/1.1\r\n" + host + "\r\n",
		codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"}, has: []string{"Host: evil"},
	},
	{name: "a target with another scheme", raw: "GET ftp://evil/a HTTP/1.1\r\n" + host + "\r\n", codes: []int{400}},
	{name: "an opaque target", raw: "GET x:y HTTP/1.1\r\n" + host + "\r\n", codes: []int{400}},
	{
		name: "a target with a line end", raw: "GET /a%0d%0aX-User:%20admin HTTP/1.1\r\n" + host + "\r\n",
		codes: []int{200, 200}, seen: []string{"GET /a%0d%0aX-User:%20admin", "GET /end"},
	},
	{name: "a target with a space", raw: "GET /a /smuggled HTTP/1.1\r\n" + host + "\r\n", codes: []int{400}},
	{
		name: "a target with dots", raw: "GET /b/../a/%2e%2e/c HTTP/1.1\r\n" + host + "\r\n",
		codes: []int{200, 200}, seen: []string{"GET /b/../a/%2e%2e/c", "GET /end"},
	},
	{
		name: "a target with a fragment", raw: "GET /a#/../b HTTP/1.1\r\n" + host + "\r\n",
		codes: []int{200, 200}, seen: []string{"GET /a%23/../b", "GET /end"},
	},
	{name: "CONNECT", raw: "CONNECT evil:443 HTTP/1.1\r\nHost: evil:443\r\n\r\n", codes: []int{405}},
	{name: "CONNECT with a path", raw: "CONNECT /a HTTP/1.1\r\n" + host + "\r\n", codes: []int{405}},
	{name: "a method with a line end", raw: "GET\r\n/a HTTP/1.1\r\n" + host + "\r\n", codes: []int{400}},
	{name: "another version", raw: "GET /a HTTP/3.7\r\n" + host + "\r\n", codes: []int{505}},
	{name: "HTTP/0.9", raw: "GET /a\r\n\r\n", codes: []int{400}},
	{name: "no host", raw: "GET /a HTTP/1.1\r\n\r\n", codes: []int{400}},
	{name: "two hosts", raw: "GET /a HTTP/1.1\r\nHost: x\r\nHost: evil\r\n\r\n", codes: []int{400}},
	{name: "a host with a space", raw: "GET /a HTTP/1.1\r\nHost: x evil\r\n\r\n", codes: []int{400}},
	{name: "a host behind a space", raw: "GET /a HTTP/1.1\r\n Host: evil\r\nHost: x\r\n\r\n", codes: []int{400}},
	{name: "a host that is a URL", raw: "GET /a HTTP/1.1\r\nHost: x/smuggled?\r\n\r\n", codes: []int{400}},

	// Fields between neighbours.
	{
		name: "forwarded headers of one's own", raw: "GET /a HTTP/1.1\r\n" + host + "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\nForwarded: for=10.0.0.1\r\n\r\n",
		codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"}, has: []string{"X-Forwarded-For: 127.0.0.1"}, hides: []string{"10.0.0.1", "evil", "https"},
	},
	{
		name: "forwarded headers said to be hop-by-hop", raw: "GET /a HTTP/1.1\r\n" + host + "Connection: close, X-Forwarded-For, X-Forwarded-Host, Host\r\n\r\n",
		codes: []int{200}, seen: []string{"GET /a"}, has: []string{"X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: x", "Host: x"},
	},
	{
		name: "hop-by-hop fields", raw: "GET /a HTTP/1.1\r\n" + host + "Connection: X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 1\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nTE: gzip\r\n\r\n",
		codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"}, hides: []string{"x-secret", "keep-alive", "proxy-", "\r\nte:"},
	},
	{
		name: "upgrade to h2c", raw: "GET /a HTTP/1.1\r\n" + host + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
		codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"}, hides: []string{"upgrade", "http2-settings"},
	},
	{
		name: "upgrade without Connection", raw: "GET /a HTTP/1.1\r\n" + host + "Upgrade: websocket\r\n\r\n",
		codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"}, hides: []string{"upgrade"},
	},
	{
		name: "upgrade that is not taken", raw: "GET /a HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"},
	},
	{
		name: "upgrade with a body", raw: "GET /a HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 35\r\n\r\n" + smuggled,
		codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"},
	},
	{
		name: "expectation", raw: posted("Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"),
		codes: []int{100, 200, 200}, seen: []string{"POST /a", "GET /end"},
	},
	{name: "expectation of something else", raw: posted("Expect: 200-ok\r\nContent-Length: 35\r\n\r\n" + smuggled), codes: []int{417}},
	{
		name: "expectation without a body", raw: "GET /a HTTP/1.1\r\n" + host + "Expect: 100-continue\r\n\r\n",
		codes: []int{200, 200}, seen: []string{"GET /a", "GET /end"},
	},

	// Sizes, and what is no HTTP.
	{name: "a field without a colon", raw: "GET /a HTTP/1.1\r\n" + host + "X\r\n\r\n", codes: []int{400}},
	{name: "a field without a name", raw: "GET /a HTTP/1.1\r\n" + host + ": x\r\n\r\n", codes: []int{400}},
	{name: "a field that is too long", raw: "GET /a HTTP/1.1\r\n" + host + "X: " + strings.Repeat("a", 20<<10) + "\r\n\r\n", codes: []int{431}},
	{name: "a target that is too long", raw: "GET /" + strings.Repeat("a", 20<<10) + " HTTP/1.1\r\n" + host + "\r\n", codes: []int{431}},
	{name: "too many fields", raw: "GET /a HTTP/1.1\r\n" + host + strings.Repeat("X: a\r\n", 65) + "\r\n", codes: []int{431}},
	{name: "a body that is too long", raw: posted("Content-Length: 2000\r\n\r\n"), codes: []int{413}},
	{
		name: "chunks that are too long", raw: posted("Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + strings.Repeat("a", 2000) + "\r\n0\r\n\r\n"),
		codes: []int{413},
	},
	{name: "a body that does not come", raw: posted("Content-Length: 500\r\n\r\n"), codes: []int{408}},
	{name: "lines before a request", raw: "\r\n\r\nGET /a HTTP/1.1\r\n" + host + "\r\n", codes: []int{400}},
	{name: "TLS", raw: "\x16\x03\x01\x00\x05hello\r\n\r\n", codes: []int{400}},
	{name: "a target that is a star", raw: "GET * HTTP/1.1\r\n" + host + "\r\n", codes: []int{400}},
	{name: "the preface of h2 in a request", raw: "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", codes: []int{400}},
}
