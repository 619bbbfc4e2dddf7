module example.dunlin/history-judge

// What Debian 12 has: scripts/install-peers builds it there.
go 1.19

require github.com/anishathalye/porcupine v1.3.1
