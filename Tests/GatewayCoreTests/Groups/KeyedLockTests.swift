import GatewayTestKit
import Testing

@testable import GatewayCore

struct KeyedLockTests {
    private struct Count: Sendable {
        var inside = 0
        var most = 0
        var total = 0
    }

    @Test("One task at a time holds the lock, and every waiting task acquires it")
    func exclusive() async throws {
        let (lock, key) = (KeyedLock<String>(), "g")
        let state = Observed(Count())
        await withDiscardingTaskGroup { group in
            for _ in 0..<200 {
                group.addTask {
                    guard await lock.acquire(key, until: .now + .seconds(600)) else { return }
                    state.change { state in
                        state.inside += 1
                        state.most = max(state.most, state.inside)
                        state.total += 1
                    }
                    await Task.yield()
                    state.change { $0.inside -= 1 }
                    lock.release(key)
                }
            }
        }
        #expect(state.current.most == 1)
        #expect(state.current.total == 200)
    }

    @Test("Locks of different keys are independent")
    func apart() async throws {
        let lock = KeyedLock<String>()
        let (one, two) = ("one", "two")
        #expect(await lock.acquire(one, until: .now))
        #expect(await lock.acquire(two, until: .now))
        #expect(await !lock.acquire(one, until: .now))
        lock.release(one)
        #expect(await lock.acquire(one, until: .now))
    }

    @Test("A waiter that times out or is cancelled does not block later waiters")
    func givenUp() async throws {
        let (lock, key) = (KeyedLock<String>(), "g")
        #expect(await lock.acquire(key, until: .now))
        #expect(await !lock.acquire(key, until: .now + .milliseconds(1)))
        let cancelled = Task { await lock.acquire(key, until: .now + .seconds(600)) }
        cancelled.cancel()
        #expect(await !cancelled.value)
        async let last = lock.acquire(key, until: .now + .seconds(600))
        lock.release(key)
        #expect(await last)
        lock.release(key)
        #expect(await lock.acquire(key, until: .now))
    }
}
