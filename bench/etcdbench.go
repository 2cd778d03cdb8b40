// etcd as a contestant: one of these is one server, with one lease, and a
// goroutine for each lock.
//
//	etcdbench etcd|mutex ENDPOINTS ROOT
//
// "etcd" is etcd's lock service: the server puts the key, and answers when it is
// first.  "mutex" is the client library's Mutex, which does that in the client;
// "etcdctl lock" uses it.  Commands and answers are those of CuratorBench.java,
// without "run".  One lease has a name only once at a time.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"go.etcd.io/etcd/etcdserver/api/v3lock/v3lockpb"
	"golang.org/x/sys/unix"
)

const leaseSeconds = 10

type locker interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// A lock of etcd's lock service
type serviceLock struct {
	service v3lockpb.LockClient
	request v3lockpb.LockRequest
	key     []byte
}

func (l *serviceLock) Lock(ctx context.Context) error {
	answer, err := l.service.Lock(ctx, &l.request)
	if err == nil {
		l.key = answer.Key
	}
	return err
}

func (l *serviceLock) Unlock(ctx context.Context) error {
	_, err := l.service.Unlock(ctx, &v3lockpb.UnlockRequest{Key: l.key})
	return err
}

// A lock that the driver has taken by name.  A channel is closed when that has
// happened; the time before it, or the error, is there then.
type holder struct {
	held, release, releasing, released chan struct{}
	heldAt, releasedAt                 int64
	err                                error
}

type bench struct {
	newLock func(path string) locker
	holders map[string]*holder
}

// CLOCK_MONOTONIC, as all programs on this machine see it
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

func (h *holder) run(lock locker) {
	defer close(h.released)
	h.err = lock.Lock(context.Background())
	h.heldAt = now()
	close(h.held)
	<-h.release
	h.releasedAt = now()
	close(h.releasing)
	if h.err == nil {
		h.err = lock.Unlock(context.Background())
	}
}

func (b *bench) command(words []string) (string, error) {
	switch words[0] {
	case "lock":
		h := &holder{held: make(chan struct{}), release: make(chan struct{}),
			releasing: make(chan struct{}), released: make(chan struct{})}
		b.holders[words[1]] = h
		go h.run(b.newLock(words[2]))
		return "ok", nil
	case "held":
		h := b.holders[words[1]]
		<-h.held
		return fmt.Sprintf("ok at=%d", h.heldAt), h.err
	case "unlock":
		h := b.holders[words[1]]
		close(h.release)
		<-h.releasing
		return fmt.Sprintf("ok at=%d", h.releasedAt), nil
	case "forget":
		return "ok", b.forget()
	}
	return "", fmt.Errorf("there is no command %s", words[0])
}

// Those that were told to release before are on their way.
func (b *bench) forget() error {
	var err error
	for _, h := range b.holders {
		select {
		case <-h.release:
		default:
			close(h.release)
		}
	}
	for _, h := range b.holders {
		<-h.released
		if h.err != nil {
			err = h.err
		}
	}
	b.holders = map[string]*holder{}
	return err
}

// Connects, and returns what makes a lock, and what ends the session.
func connect(kind, endpoints, root string) (func(string) locker, func() error, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(endpoints, ","), DialTimeout: 15 * time.Second})
	if err != nil {
		return nil, nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(leaseSeconds))
	if err != nil {
		return nil, nil, err
	}
	service := v3lockpb.NewLockClient(client.ActiveConnection())
	if kind == "mutex" {
		return func(path string) locker {
			return concurrency.NewMutex(session, root+path)
		}, session.Close, nil
	}
	return func(path string) locker {
		return &serviceLock{service: service, request: v3lockpb.LockRequest{
			Name: []byte(root + path), Lease: int64(session.Lease())}}
	}, session.Close, nil
}

func say(answer string, err error) {
	if err != nil {
		answer = "error " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	fmt.Println(answer)
}

func main() {
	newLock, closeSession, err := connect(os.Args[1], os.Args[2], os.Args[3])
	say("ok", err)
	if err != nil {
		os.Exit(1)
	}
	b := &bench{newLock: newLock, holders: map[string]*holder{}}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		say(b.command(strings.Fields(in.Text())))
	}
	if err := closeSession(); err != nil {
		os.Exit(1)
	}
}
