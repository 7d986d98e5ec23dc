import GatewayCore
import GatewayStorage
import Testing

struct StoreLockTests {
    @Test("A lock has one holder and is free after its release")
    func oneHolder() async throws {
        try await withStorePath { path in
            #expect(try !StoreLock.isHeld(at: path))
            let lock = try StoreLock(at: path)
            #expect(try StoreLock.isHeld(at: path))
            await expectError(.conflict) { try StoreLock(at: path) }
            #expect(try StoreLock.isHeld(at: path))

            lock.release()
            lock.release()
            #expect(try !StoreLock.isHeld(at: path))
            try StoreLock(at: path).release()
        }
    }

    @Test("A deallocated lock is free")
    func forgottenLock() async throws {
        try await withStorePath { path in
            do {
                let lock = try StoreLock(at: path)
                #expect(try StoreLock.isHeld(at: path))
                withExtendedLifetime(lock) {}
            }
            #expect(try !StoreLock.isHeld(at: path))
        }
    }

    @Test("Checking a lock creates no file")
    func askingLeavesNothing() async throws {
        try await withTemporaryDirectory { directory in
            let isHeld = try StoreLock.isHeld(at: directory + "/gateway.db")
            #expect(!isHeld)
            #expect(try contents(of: directory).isEmpty)
        }
    }

    @Test("A lock in a missing directory is refused")
    func missingDirectory() async throws {
        try await withTemporaryDirectory { directory in
            await expectError(.storeUnavailable) { try StoreLock(at: directory + "/none/gateway.db") }
        }
    }

    @Test("A holder's announcement can be read only while it holds the lock")
    func announcement() async throws {
        try await withStorePath { path in
            #expect(try StoreLock.announcement(at: path) == nil)
            let lock = try StoreLock(at: path)
            #expect(try StoreLock.announcement(at: path) == nil)
            try lock.announce("a longer text")
            try lock.announce("short")
            #expect(try StoreLock.announcement(at: path) == "short")
            lock.release()
            #expect(try StoreLock.announcement(at: path) == nil)
            await expectError(.storeUnavailable) { try lock.announce("late") }
            let next = try StoreLock(at: path)
            #expect(try StoreLock.announcement(at: path) == nil)
            next.release()
        }
    }
}
