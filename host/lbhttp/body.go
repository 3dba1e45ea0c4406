package lbhttp

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
)

// endBody calls end once, when the body is over: with nil at its end, with the error it broke
// off with, or with errClosed if it was closed before its end.
type endBody struct {
	io.ReadCloser
	ended atomic.Bool
	end   func(error)
}

func (b *endBody) Read(p []byte) (n int, err error) {
	err = context.Canceled
	defer func() { // a base transport's body may panic, and then nobody closes it
		if err == io.EOF {
			b.finish(nil)
		} else if err != nil {
			b.finish(err)
		}
	}()
	return b.ReadCloser.Read(p)
}

func (b *endBody) Close() error {
	err := b.ReadCloser.Close()
	b.finish(errClosed)
	return err
}

func (b *endBody) finish(err error) {
	if !b.ended.Swap(true) {
		b.end(err)
	}
}

// duplexBody is the connection behind a 101 answer. It can be written, which is what makes an
// upgrade through httputil.ReverseProxy work. One direction may end before the other, so that
// only Close ends it.
type duplexBody struct {
	io.ReadWriteCloser
	ended atomic.Bool
	end   func()
}

func (b *duplexBody) Close() error {
	err := b.ReadWriteCloser.Close()
	if !b.ended.Swap(true) {
		b.end()
	}
	return err
}

// CloseWrite ends the direction towards the replica, if the connection can.
func (b *duplexBody) CloseWrite() error {
	if c, ok := b.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return http.ErrNotSupported
}
