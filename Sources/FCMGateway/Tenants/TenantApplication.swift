import ArgumentParser
import GatewayCore
import GatewayService
import StrictJSON
import Synchronization
import UnixSignals

/// The failure of a command that a signal stopped between two changes. Completed changes stay.
struct Interruption: Error {
    let signal: UnixSignal
    let message: String

    /// 128 plus the signal's number, as shells report it.
    var exitCode: ExitCode { ExitCode(128 + self.signal.rawValue) }
}

/// Traps the signals that ask a program to end, during work that may stop only between two changes.
final class StopSignals: Sendable {
    private let earliest = Mutex<UnixSignal?>(nil)

    /// The first signal, if one arrived.
    var first: UnixSignal? { self.earliest.withLock(\.self) }

    /// Runs a body that checks ``first`` wherever it can stop. During the body, these signals have no other effect.
    static func trapped<Result>(_ body: (StopSignals) async throws -> Result) async throws -> Result {
        let signals = StopSignals()
        let sequence = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await signal in sequence { signals.earliest.withLock { $0 = $0 ?? signal } }
            }
            defer { group.cancelAll() }
            return try await body(signals)
        }
    }
}

/// Makes the changes of a ``TenantPlan``, one after another.
///
/// A key that the gateway created is always printed, even if a later change fails or a signal arrives.
struct TenantApplication {
    let plan: TenantPlan
    /// True to print one object at the end, false to print each change when it is made.
    let isJSON: Bool

    private struct Progress {
        var done: [TenantChange] = []
        var keys: [MadeKey] = []
        var failure: (any Error)?
        var printFailure: (any Error)?
        var signal: UnixSignal?
    }

    /// A key that the gateway created, which it shows only once.
    private struct MadeKey {
        let tenant: TenantID
        let name: String
        let id: String
        let text: String

        init?(_ answer: JSONValue?, _ change: TenantChange) {
            guard change.makesKey, let text = answer?.text("key"), let id = answer?.text("id") else { return nil }
            (self.tenant, self.name, self.id, self.text) = (change.tenant, change.name ?? "", id, text)
        }

        var adviceIfLost: String { KeyCommand.adviceIfLost(self.id, tenant: self.tenant) }

        func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("tenant", self.tenant.text)
                writer.member("name", self.name)
                writer.member("id", self.id)
                writer.member("key", self.text)
            }
        }
    }

    /// Makes the changes, and checks for a signal before each of them.
    ///
    /// Throws the first failed call's error, an `Interruption`, or the error of a failed print.
    func run(
        reporter: ProgressReporter,
        stop: () -> UnixSignal?,
        print: (CommandOutput) throws -> Void,
        call: (TenantChange) async throws -> JSONValue?
    ) async throws {
        var progress = Progress()
        for change in self.plan.changes {
            progress.signal = stop()
            if progress.signal != nil { break }
            reporter.report(progress.done.count, of: self.plan.changes.count)
            let key: MadeKey?
            do {
                key = MadeKey(try await call(change), change)
            } catch {
                progress.failure = Self.explained(error, change)
                break
            }
            progress.done.append(change)
            if let key { progress.keys.append(key) }
            guard !self.isJSON else { continue }
            // Printed at once, so that a later failure can't lose a new key.
            reporter.finish()
            do {
                try print(Self.output(change, key))
            } catch {
                progress.printFailure = error
                break
            }
        }
        reporter.finish()
        try self.conclude(progress, print)
    }

    private func conclude(_ progress: Progress, _ print: (CommandOutput) throws -> Void) throws {
        let missing = Array(self.plan.changes.dropFirst(progress.done.count))
        if self.isJSON {
            do {
                try print(self.object(progress, missing: missing))
            } catch let failure as CommandFailure {
                let earlier = progress.failure.map { "\($0)\n" } ?? ""
                throw CommandFailure(earlier + failure.message)
            }
        }
        func summary(_ reason: String, _ advice: String) -> String {
            let list = missing.map { "  \($0.action.mark) \($0.title.printable)" }.joined(separator: "\n")
            return "\(TenantPlan.count(progress.done.count)) made; \(reason):\n\(list)\n"
                + "Completed changes stay. \(advice)"
        }
        if let failure = progress.printFailure {
            if !missing.isEmpty {
                try self.remark(summary("these were not tried", "Apply the file again to continue."), print)
            }
            throw failure
        }
        if let failure = progress.failure {
            let reason = "the first of these failed, the others were not tried"
            try self.remark(summary(reason, "Fix the cause and apply the file again."), print)
            throw failure
        }
        if let signal = progress.signal {
            let reason = "\(signal) stopped the work before these"
            throw Interruption(signal: signal, message: summary(reason, "Apply the file again to continue."))
        }
        let count = progress.done.count
        let end = count == 0 ? "nothing to change" : "\(TenantPlan.count(count)) made"
        let once = progress.keys.isEmpty ? [] : ["This is the only time the keys are shown."]
        try self.remark((self.plan.remarks + self.plan.unnamedRemarks + [end] + once).joined(separator: "\n"), print)
    }

    /// Prints remarks for people; programs find the same facts in the object.
    private func remark(_ text: String, _ print: (CommandOutput) throws -> Void) throws {
        if !self.isJSON { try print(CommandOutput("", remark: text)) }
    }

    private func object(_ progress: Progress, missing: [TenantChange]) -> CommandOutput {
        var output = CommandOutput.json { writer in
            writer.member("dry_run", false)
            writer.array("changes", progress.done) { $1.write(to: &$0) }
            writer.array("keys", progress.keys) { $1.write(to: &$0) }
            writer.array("not_made", missing) { $1.write(to: &$0) }
            writer.member("remarks", self.plan.remarks + self.plan.unnamedRemarks)
            writer.member("interrupted_by", ifPresent: progress.signal?.description)
        }
        if !progress.keys.isEmpty {
            output.adviceIfLost = progress.keys.map(\.adviceIfLost).joined(separator: ". ")
        }
        return output
    }

    private static func output(_ change: TenantChange, _ key: MadeKey?) -> CommandOutput {
        let secret = key.map { StyledText("    key: \($0.text.printable)") }
        var output = CommandOutput(StyledText(lines: [change.lines] + [secret].compactMap(\.self)))
        output.adviceIfLost = key?.adviceIfLost
        return output
    }

    /// Returns the error of a failed change, with advice if a key may have been created nevertheless.
    private static func explained(_ error: any Error, _ change: TenantChange) -> any Error {
        // Repeating an import is harmless.
        guard change.makesKey else { return error }
        return APIError.doubting(
            error,
            "The \(change.title) may have been created. If fcm-gateway key list "
                + "\(change.tenant) shows it, revoke it before you apply the file again: its secret was never shown."
        )
    }
}
