import GatewayCore
import Synchronization
import Testing

@testable import GatewayStorage

struct ScanGateTests {
    /// Scans that run until ``end(_:)`` is called.
    private final class Scans: Sendable {
        private let state = Mutex<(started: [String], running: [String: CheckedContinuation<Void, Never>])>(([], [:]))
        private let (news, continuation) = AsyncStream.makeStream(of: String.self)

        /// The scans that have started, in order.
        var started: [String] { self.state.withLock { $0.started } }

        func run(_ name: String) async {
            await withCheckedContinuation { continuation in
                self.state.withLock { state in
                    state.started.append(name)
                    state.running[name] = continuation
                }
                self.continuation.yield(name)
            }
        }

        /// Returns once `count` scans have started.
        func wait(for count: Int) async {
            for await _ in self.news where self.started.count >= count { return }
        }

        func end(_ name: String) {
            self.state.withLock { $0.running.removeValue(forKey: name) }?.resume()
        }
    }

    private static func settle(_ gate: ScanGate, waiting count: Int) async {
        while gate.waitingCount < count { await Task.yield() }
    }

    @Test("Two scans run at once, one per caller, and other callers overtake a caller's second scan")
    func turns() async throws {
        let (gate, scans) = (ScanGate(), Scans())
        try await withThrowingTaskGroup(of: Void.self) { group in
            func begin(_ name: String, _ caller: String?) {
                group.addTask { try await gate.run(for: caller) { await scans.run(name) } }
            }
            begin("a1", "a")
            await scans.wait(for: 1)
            begin("a2", "a")
            await Self.settle(gate, waiting: 1)
            begin("b1", "b")
            await scans.wait(for: 2)
            #expect(scans.started == ["a1", "b1"])
            begin("operator", nil)
            await Self.settle(gate, waiting: 2)
            scans.end("b1")
            await scans.wait(for: 3)
            #expect(scans.started.last == "operator")
            scans.end("a1")
            await scans.wait(for: 4)
            #expect(scans.started.last == "a2")
            scans.end("operator")
            scans.end("a2")
            try await group.waitForAll()
        }
    }

    @Test("A full queue refuses all scans, and a caller's full share refuses its own")
    func fullQueue() async throws {
        let gate = ScanGate(limits: ScanGate.Limits(running: 1, waiting: 3, waitingOfOneCaller: 2))
        let scans = Scans()
        try await withThrowingTaskGroup(of: Void.self) { group in
            func begin(_ name: String, _ caller: String?) {
                group.addTask { try await gate.run(for: caller) { await scans.run(name) } }
            }
            func refusal(_ caller: String?) async -> GatewayError.Code? {
                await #expect(throws: GatewayError.self) { try await gate.run(for: caller) {} }?.code
            }
            begin("a1", "a")
            await scans.wait(for: 1)
            begin("a2", "a")
            begin("a3", "a")
            await Self.settle(gate, waiting: 2)
            #expect(await refusal("a") == .overloaded)
            begin("b1", "b")
            await Self.settle(gate, waiting: 3)
            #expect(await refusal("b") == .overloaded)
            #expect(await refusal(nil) == .overloaded)
            for (count, name) in [(2, "a1"), (3, scans.started.last ?? "")] {
                scans.end(name)
                await scans.wait(for: count)
                scans.end(scans.started.last ?? "")
            }
            await scans.wait(for: 4)
            scans.end(scans.started.last ?? "")
            try await group.waitForAll()
            #expect(gate.waitingCount == 0)
        }
    }

    @Test("A cancelled scan leaves the queue, and one cancelled before never enters it")
    func cancellation() async throws {
        let (gate, scans) = (ScanGate(limits: ScanGate.Limits(running: 1)), Scans())
        async let first: Void = gate.run(for: "a") { await scans.run("a1") }
        await scans.wait(for: 1)
        let waiting = Task { try await gate.run(for: "b") { await scans.run("b1") } }
        await Self.settle(gate, waiting: 1)
        waiting.cancel()
        await expectError(.cancelled) { try await waiting.value }
        let late = Task {
            while !Task.isCancelled { await Task.yield() }
            try await gate.run(for: "c") { await scans.run("c1") }
        }
        late.cancel()
        await #expect(throws: GatewayError.self) { try await late.value }
        #expect(gate.waitingCount == 0)
        scans.end("a1")
        try await first
        #expect(scans.started == ["a1"])
    }

    @Test("A shut gate reports when the running scans have ended, and admits none until it opens")
    func shut() async throws {
        let (gate, scans) = (ScanGate(), Scans())
        let (idle, isIdle) = AsyncStream.makeStream(of: Int.self)
        async let first: Void = gate.run(for: "a") { await scans.run("a1") }
        await scans.wait(for: 1)
        gate.shut { isIdle.yield(scans.started.count) }
        async let second: Void = gate.run(for: "b") { await scans.run("b1") }
        await Self.settle(gate, waiting: 1)
        scans.end("a1")
        try await first
        #expect(await idle.first { _ in true } == 1)
        #expect(gate.waitingCount == 1)
        gate.open()
        await scans.wait(for: 2)
        scans.end("b1")
        try await second
    }
}
