// A leaderboard: players with equal points share a rank, and each can see the page around itself.
//
//	leaderboard add PLAYER POINTS     adds points, and prints how many the player has now
//	leaderboard top COUNT             prints the first players
//	leaderboard around PLAYER COUNT   prints the player with so many before and after it
//
// PORT is the server's port (6379).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
)

const board = "{board}"

// The players from one position to another, best first, and how many have more points than the first of them. Who
// else writes meanwhile cannot come in between, so a page never has a player twice.
var page = redis.NewScript(`
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
if ARGV[1] ~= '' then
    local at = redis.call('ZREVRANK', KEYS[1], ARGV[1])
    if not at then return false end
    first, last = math.max(at - first, 0), at + last
end
local players = redis.call('ZREVRANGE', KEYS[1], first, last, 'WITHSCORES')
local better = 0
if players[2] then better = redis.call('ZCOUNT', KEYS[1], '(' .. players[2], '+inf') end
return {first, better, players}
`)

// Player is a line of the board.
type Player struct {
	Rank   int64
	Name   string
	Points string
}

// Board is a leaderboard at a server.
type Board struct {
	server *redis.Client
}

// Add adds points, which may be negative, and returns the player's sum.
func (b Board) Add(ctx context.Context, player string, points float64) (float64, error) {
	return b.server.ZIncrBy(ctx, board, points, player).Result()
}

// Top returns the first players.
func (b Board) Top(ctx context.Context, count int) ([]Player, error) {
	return b.read(ctx, "", 0, count-1)
}

// Around returns a player with so many before and after it.
func (b Board) Around(ctx context.Context, player string, count int) ([]Player, error) {
	players, err := b.read(ctx, player, count, count)
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("%s is not on the board", player)
	}
	return players, err
}

func (b Board) read(ctx context.Context, around string, first, last int) ([]Player, error) {
	answer, err := page.Run(ctx, b.server, []string{board}, around, first, last).Slice()
	if err != nil {
		return nil, err
	}
	position, better, pairs := answer[0].(int64), answer[1].(int64), answer[2].([]any)
	// The first one shares its rank with all who have as many points, those on the page before included. Each later
	// one has the rank of the one before it, or that of its position if it has fewer points.
	rank := better + 1
	var players []Player
	for at := 0; at < len(pairs); at += 2 {
		name, points := pairs[at].(string), pairs[at+1].(string)
		if at > 0 && points != players[len(players)-1].Points {
			rank = position + int64(at/2) + 1
		}
		players = append(players, Player{rank, name, points})
	}
	return players, nil
}

func run(arguments []string) error {
	port := os.Getenv("PORT")
	if port == "" {
		port = "6379"
	}
	ctx := context.Background()
	server := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
	defer server.Close()
	own := Board{server}
	var players []Player
	switch {
	case len(arguments) == 3 && arguments[0] == "add":
		points, err := strconv.ParseFloat(arguments[2], 64)
		if err != nil {
			return err
		}
		sum, err := own.Add(ctx, arguments[1], points)
		if err == nil {
			fmt.Println(sum)
		}
		return err
	case len(arguments) == 2 && arguments[0] == "top":
		count, err := strconv.Atoi(arguments[1])
		if err == nil {
			players, err = own.Top(ctx, count)
		}
		if err != nil {
			return err
		}
	case len(arguments) == 3 && arguments[0] == "around":
		count, err := strconv.Atoi(arguments[2])
		if err == nil {
			players, err = own.Around(ctx, arguments[1], count)
		}
		if err != nil {
			return err
		}
	default:
		return errors.New("usage: leaderboard add PLAYER POINTS | top COUNT | around PLAYER COUNT")
	}
	for _, player := range players {
		fmt.Printf("%d %s %s\n", player.Rank, player.Name, player.Points)
	}
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
