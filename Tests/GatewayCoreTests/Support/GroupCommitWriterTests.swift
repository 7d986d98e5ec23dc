import GatewayTestKit
import Testing

@testable import GatewayCore

struct GroupCommitWriterTests {
    /// A store of numbers that can refuse a transaction or hold it.
    private struct Store: Sendable {
        struct State {
            var batches: [[Int]] = []
            var refuses = false
            var isHeld = false
            var waiting = 0
        }

        let state = Observed(State())

        var batches: [[Int]] { self.state.current.batches }

        func writer(
            maxChanges: Int = .max,
            maxBytes: Int = .max,
            changesPerTransaction: Int = 100
        ) -> GroupCommitWriter<Int, Int> {
            GroupCommitWriter(
                maxChanges: maxChanges,
                maxBytes: maxBytes,
                changesPerTransaction: changesPerTransaction,
                retryInterval: .milliseconds(1),
                byteCount: { $0 },
                transaction: { (numbers: [Int]) async throws(GatewayError) -> [Int] in
                    self.state.change { $0.waiting += 1 }
                    try? await self.state.wait { !$0.isHeld }
                    let isTaken = self.state.change { state in
                        if !state.refuses { state.batches.append(numbers) }
                        return !state.refuses
                    }
                    guard isTaken else { throw GatewayError(.storeUnavailable, "refused") }
                    return numbers.map { -$0 }
                }
            )
        }
    }

    private let store = Store()

    @Test("Changes added during a transaction share the next one in order, and a commit returns its outcome")
    func batches() async throws {
        let writer = self.store.writer()
        self.store.state.change { $0.isHeld = true }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = await writer.run() }
            group.addTask {
                let result = try await writer.commit(1)
                #expect(result == -1)
            }
            try await self.store.state.wait { $0.waiting == 1 }
            writer.add([2, 3])
            writer.add([4])
            self.store.state.change { $0.isHeld = false }
            try await self.store.state.wait { $0.batches.count == 2 }
            writer.close()
            try await group.waitForAll()
        }
        #expect(self.store.batches == [[1], [2, 3, 4]])
    }

    @Test("A flush waits for the running batch, so changes keep their order")
    func flushes() async throws {
        let writer = self.store.writer()
        self.store.state.change { $0.isHeld = true }
        writer.add([1])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { #expect(await writer.flush()) }
            try await self.store.state.wait { $0.waiting == 1 }
            writer.add([2])
            group.addTask {
                #expect(await writer.flush())
                #expect(self.store.batches == [[1], [2]])
            }
            for _ in 0..<100 { await Task.yield() }
            #expect(self.store.state.current.waiting == 1)
            self.store.state.change { $0.isHeld = false }
            try await group.waitForAll()
        }
    }

    @Test("A transaction has at most the configured number of changes")
    func bound() async {
        let writer = self.store.writer(changesPerTransaction: 3)
        writer.add(Array(1...7))
        #expect(await writer.flush())
        #expect(self.store.batches == [[1, 2, 3], [4, 5, 6], [7]])
    }

    @Test("A refused change is retried before later changes, unless a caller waits for it")
    func refusal() async throws {
        let writer = self.store.writer()
        self.store.state.change { $0.refuses = true }
        writer.add([1])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = await writer.run() }
            await #expect(throws: GatewayError.self) { _ = try await writer.commit(2) }
            writer.add([3])
            self.store.state.change { $0.refuses = false }
            try await self.store.state.wait { $0.batches.joined().count == 2 }
            writer.close()
            try await group.waitForAll()
        }
        #expect(Array(self.store.batches.joined()) == [1, 3])
    }

    @Test("The writer has room up to the bound of changes or bytes, and refused changes keep their room")
    func room() async {
        for writer in [self.store.writer(maxChanges: 2), self.store.writer(maxBytes: 8)] {
            self.store.state.change { $0.refuses = true }
            writer.add([4])
            #expect(writer.hasRoom)
            writer.add([4])
            #expect(!writer.hasRoom)
            #expect(!(await writer.flush()))
            #expect(!writer.hasRoom)
            writer.add([4])
            self.store.state.change { $0.refuses = false }
            #expect(await writer.flush())
            #expect(writer.hasRoom)
        }
        #expect(self.store.batches == [[4, 4, 4], [4, 4, 4]])
    }

    @Test("A closed writer commits once more, counts lost changes and accepts no new ones", arguments: [false, true])
    func end(refuses: Bool) async {
        let writer = self.store.writer()
        self.store.state.change { $0.refuses = refuses }
        writer.add([1, 2])
        writer.close()
        #expect(await writer.run() == (refuses ? 2 : 0))
        #expect(self.store.batches == (refuses ? [] : [[1, 2]]))
        await #expect(throws: GatewayError.self) { _ = try await writer.commit(3) }
        writer.add([4])
        #expect(await writer.flush())
        #expect(self.store.batches == (refuses ? [] : [[1, 2]]))
    }
}
