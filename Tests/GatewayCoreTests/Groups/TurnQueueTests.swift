import GatewayTestKit
import Testing

@testable import GatewayCore

struct TurnQueueTests {
    private struct Count: Sendable {
        var inside = 0
        var most = 0
        var total = 0
    }

    @Test("One at a time is let through, and everybody in the end")
    func exclusive() async throws {
        let (queue, key) = (TurnQueue<String>(), "g")
        let state = Observed(Count())
        await withDiscardingTaskGroup { group in
            for _ in 0..<200 {
                group.addTask {
                    guard await queue.enter(key, until: .now + .seconds(600)) else { return }
                    state.change { state in
                        state.inside += 1
                        state.most = max(state.most, state.inside)
                        state.total += 1
                    }
                    await Task.yield()
                    state.change { $0.inside -= 1 }
                    queue.leave(key)
                }
            }
        }
        #expect(state.current.most == 1)
        #expect(state.current.total == 200)
    }

    @Test("Keys do not wait for one another")
    func apart() async throws {
        let queue = TurnQueue<String>()
        let (one, two) = ("one", "two")
        #expect(await queue.enter(one, until: .now))
        #expect(await queue.enter(two, until: .now))
        #expect(await !queue.enter(one, until: .now))
        queue.leave(one)
        #expect(await queue.enter(one, until: .now))
    }

    @Test("Who gives up, by deadline or by cancellation, does not hold up those behind")
    func givenUp() async throws {
        let (queue, key) = (TurnQueue<String>(), "g")
        #expect(await queue.enter(key, until: .now))
        #expect(await !queue.enter(key, until: .now + .milliseconds(1)))
        let cancelled = Task { await queue.enter(key, until: .now + .seconds(600)) }
        cancelled.cancel()
        #expect(await !cancelled.value)
        async let last = queue.enter(key, until: .now + .seconds(600))
        queue.leave(key)
        #expect(await last)
        queue.leave(key)
        #expect(await queue.enter(key, until: .now))
    }
}
