import ArgumentParser
import Crypto
import EventLoopHTTP
import Foundation
import GatewayCore
import GatewayService
import HTTPTypes
import NIOCore
import StrictJSON

/// `batch`: sends one message to many recipients, later and at a pace, and shows the results.
struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch",
        abstract: "Send a message to many recipients, and read the results.",
        discussion: """
            The gateway is at --url or GATEWAY_URL (default http://127.0.0.1:8080). The key comes from --key-file, \
            GATEWAY_KEY or GATEWAY_KEY_FILE. It needs the scopes batches:manage and messages:send.
            """,
        subcommands: [
            Create.self, List.self, Show.self, Watch.self, Pause.self, Resume.self, Cancel.self, Delete.self,
            Results.self,
        ]
    )

    private static let columns = [
        "id", "state", "reason", "label", "due_at", "total", "accepted", "rejected", "unknown", "expired", "cancelled",
        "waiting",
    ]

    private static func path(_ tenant: TenantID, _ more: String...) -> [String] {
        ["v1", "tenants", tenant.text, "batches"] + more
    }

    private static func output(_ batch: JSONValue?, json: Bool) -> CommandOutput {
        var output = CommandOutput.object(batch, columns: Self.columns, json: json)
        output.remark =
            batch?.list("warnings").compactMap(\.string).map { "warning: \($0)" }.joined(separator: "\n") ?? ""
        return output
    }

    /// The arguments of verbs for one batch.
    struct BatchOptions: ParsableArguments {
        @Argument(help: "The tenant.") var tenant: TenantID
        @Argument(help: "The batch's id.") var id: String
        @OptionGroup var service: ServiceOptions

        func validate() throws {
            if self.id.isEmpty { throw ValidationError("The batch's id is empty.") }
        }

        func call(_ method: APIClient.Method, _ verb: String? = nil, _ client: APIClient) async throws -> JSONValue? {
            try await client.call(method, BatchCommand.path(self.tenant, self.id) + (verb.map { [$0] } ?? []))
        }

        func change(_ verb: String, json: Bool) async throws {
            try await self.service.call { BatchCommand.output(try await self.call(.post, verb, $0), json: json) }
        }
    }

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "create",
            abstract: "Upload recipients and send them a message.",
            discussion: """
                The recipients are uploaded in parts. If that is interrupted, the same command continues it: the batch is \
                recognised by its message, its recipients and its label. To send the same once more, give another \
                --label.

                Example:
                  fcm-gateway batch create shop --tokens-file tokens.txt --title Goal
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Option(help: "The time to begin, such as 2026-12-01T17:58:00Z.") var sendAt: String?
        @Option(help: "The time over which the recipients are spread, such as 5m.") var window: DurationArgument?
        @Option(help: "The time after which what is left is given up.") var expiresIn: DurationArgument?
        @Option(help: "A name by which you find the batch again.") var label: String?
        @Option(help: "The number of recipients that are sent to first, alone.") var canary: Int?
        @Flag(help: "Do not begin within two minutes of a quarter of an hour.") var avoidPeaks = false
        @Flag(help: "Send once more to recipients whose outcome is unknown.") var resendUnknown = false
        @Flag(help: "Keep accepted recipients in the results too.") var keepAll = false
        @OptionGroup(title: "Message") var message: MessageOptions
        @OptionGroup var service: ServiceOptions
        @OptionGroup var output: OutputOptions
        @OptionGroup var progress: ProgressOptions

        func run() async throws {
            let body = try self.message.makeBody()
            let progress = self.progress.reporter("recipients uploaded")
            try await self.service.call { client in
                try await self.perform(client, body: body, progress: progress)
            }
        }

        func perform(_ client: APIClient, body: ByteBuffer, progress: ProgressReporter) async throws -> CommandOutput {
            guard let members = try JSONDocument(parsing: body, limits: .trusted).root.members else {
                throw CommandFailure("the message is not a JSON object")
            }
            let recipients = members.first { $0.keyEquals("tokens") || $0.keyEquals("fids") }
            let texts = recipients?.value.elements?.compactMap(\.string) ?? []
            let request = self.request(members, isOpen: recipients != nil)
            // The same command has the same key.
            var digest = SHA256()
            for text in [self.tenant.text] + texts { digest.update(data: Data("\(text)\n".utf8)) }
            digest.update(data: Data(request.readableBytesView))
            let key = "batch create \(Hex.text(Array(digest.finalize().prefix(16))))"
            let headers: HTTPHeaderLines = [HTTPField.Name(constant: "Idempotency-Key"): key]
            var batch = try await client.call(.post, BatchCommand.path(self.tenant), headers: headers, body: request)
            guard recipients != nil else { return BatchCommand.output(batch, json: self.output.isJSON) }
            guard let id = batch?.text("id") else { throw CommandFailure("the gateway's answer names no batch") }
            guard batch?.text("state") == "open" else {
                throw CommandFailure("the batch \(id) was started before; to send the same again, give another --label")
            }
            let name = recipients?.key ?? "tokens"
            let parts = Self.parts(of: texts)
            var done = 0
            for (index, part) in parts.enumerated() {
                done += part.count
                // An earlier run has uploaded the first parts, in this order.
                guard done > batch?.integer("total") ?? 0 else { continue }
                let body = JSONWriter.object { writer in
                    writer.key(name)
                    writer.array(part) { $0.string($1) }
                }
                let path = BatchCommand.path(self.tenant, id, "parts", "\(index + 1)")
                _ = try await client.call(.put, path, body: body)
                progress.report(done, of: texts.count)
            }
            progress.finish()
            let start = JSONWriter.object { writer in
                writer.member("parts", parts.count)
                writer.member("recipients", texts.count)
            }
            batch = try await client.call(.post, BatchCommand.path(self.tenant, id, "start"), body: start)
            return BatchCommand.output(batch, json: self.output.isJSON)
        }

        private func request(_ members: JSONMembers, isOpen: Bool) -> ByteBuffer {
            let targets = ["token", "fid", "topic", "condition", "device_group", "tokens", "fids"]
            return JSONWriter.object { writer in
                writer.object("message") { writer in
                    for member in members where !targets.contains(member.key) {
                        writer.key(member.key)
                        writer.value(member.value)
                    }
                }
                if isOpen {
                    writer.member("open", true)
                } else {
                    writer.object("to") { writer in
                        for member in members where targets.contains(member.key) {
                            // A batch names lists.
                            let isSingle = member.keyEquals("token") || member.keyEquals("fid")
                            writer.key(isSingle ? member.key + "s" : member.key)
                            if isSingle { writer.beginArray() }
                            writer.value(member.value)
                            if isSingle { writer.endArray() }
                        }
                    }
                }
                writer.member("send_at", ifPresent: self.sendAt)
                writer.member("label", ifPresent: self.label)
                if let window = self.window { writer.member("window_s", window.seconds) }
                if let time = self.expiresIn { writer.member("expires_in_s", time.seconds) }
                if let count = self.canary { writer.object("canary") { $0.member("recipients", count) } }
                if self.avoidPeaks { writer.member("avoid_peaks", true) }
                if self.resendUnknown { writer.member("on_unknown", "resend") }
                if self.keepAll { writer.member("keep", "all") }
            }
        }

        /// Cuts the recipients into parts of at most 5,000 recipients and a megabyte.
        static func parts(of texts: [String]) -> [ArraySlice<String>] {
            var parts: [ArraySlice<String>] = []
            var (start, bytes) = (0, 0)
            for (index, text) in texts.enumerated() {
                if index - start == Batches.maxPartRecipients || bytes + text.utf8.count > 900_000 {
                    parts.append(texts[start..<index])
                    (start, bytes) = (index, 0)
                }
                bytes += text.utf8.count + 3
            }
            return parts + [texts[start...]]
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List a tenant's batches, the newest first.",
            discussion: """
                Example:
                  fcm-gateway batch list shop --state running
                """
        )

        @Argument(help: "The tenant.") var tenant: TenantID
        @Option(help: "Only batches in this state.") var state: String?
        @Option(help: "Only batches with this label.") var label: String?
        @Option(help: "The most batches to list.") var limit = 50
        @OptionGroup var service: ServiceOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await self.service.call { client in
                let query = [("state", self.state), ("label", self.label), ("limit", "\(self.limit)")]
                    .compactMap { name, value in value.map { (name: name, value: $0) } }
                let answer = try await client.call(.get, BatchCommand.path(self.tenant), query: query)
                let list = answer?.list("batches") ?? []
                return .list(list, member: "batches", columns: BatchCommand.columns, json: self.output.isJSON)
            }
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Show a batch.",
            discussion: """
                Example:
                  fcm-gateway batch show shop 0198c0de
                """
        )

        @OptionGroup var batch: BatchOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await self.batch.service.call { client in
                BatchCommand.output(try await self.batch.call(.get, nil, client), json: self.output.isJSON)
            }
        }
    }

    struct Watch: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "watch",
            abstract: "Follow a batch until it is over or paused.",
            discussion: """
                The exit code is 1 if the batch did not finish.

                Example:
                  fcm-gateway batch watch shop 0198c0de
                """
        )

        @OptionGroup var batch: BatchOptions
        @OptionGroup var output: OutputOptions
        @OptionGroup var progress: ProgressOptions

        func run() async throws {
            let progress = self.progress.reporter("recipients done")
            try await self.batch.service.call { client in
                let start = ContinuousClock.now
                var first: Int?
                while true {
                    let batch = try await self.batch.call(.get, nil, client)
                    let total = batch?.integer("total") ?? 0
                    let done = total - (batch?.integer("waiting") ?? 0)
                    let rate = Double(done - (first ?? done)) / max(1, (ContinuousClock.now - start) / .seconds(1))
                    first = first ?? done
                    let left = rate > 0 ? ", \(Int(rate)) a second, \(Int(Double(total - done) / rate)) s left" : ""
                    progress.report(done, of: total, note: left)
                    let state = batch?.text("state") ?? ""
                    if ["finished", "cancelled", "expired", "paused"].contains(state) {
                        progress.finish()
                        var output = BatchCommand.output(batch, json: self.output.isJSON)
                        output.isRefusal = state != "finished"
                        return output
                    }
                    try await Task.sleep(for: .seconds(1))
                }
            }
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "pause",
            abstract: "Pause a batch; slices that have begun finish.",
            discussion: """
                Example:
                  fcm-gateway batch pause shop 0198c0de
                """
        )

        @OptionGroup var batch: BatchOptions
        @OptionGroup var output: OutputOptions

        func run() async throws { try await self.batch.change("pause", json: self.output.isJSON) }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "resume",
            abstract: "Continue a paused batch, with this key.",
            discussion: """
                Example:
                  fcm-gateway batch resume shop 0198c0de
                """
        )

        @OptionGroup var batch: BatchOptions
        @OptionGroup var output: OutputOptions

        func run() async throws { try await self.batch.change("resume", json: self.output.isJSON) }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cancel",
            abstract: "End a batch; nothing is sent to the rest.",
            discussion: """
                Example:
                  fcm-gateway batch cancel shop 0198c0de
                """
        )

        @OptionGroup var batch: BatchOptions
        @OptionGroup var output: OutputOptions

        func run() async throws { try await self.batch.change("cancel", json: self.output.isJSON) }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete",
            abstract: "Delete a batch that is over, with its results.",
            discussion: """
                Example:
                  fcm-gateway batch delete shop 0198c0de
                """
        )

        @OptionGroup var batch: BatchOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            try await self.batch.service.call { client in
                _ = try await self.batch.call(.delete, nil, client)
                return .done("batch deleted", json: self.output.isJSON) { $0.member("deleted", true) }
            }
        }
    }

    struct Results: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "results",
            abstract: "Print a batch's results, a line for each recipient.",
            discussion: """
                Without --outcome, waiting recipients are left out. Accepted ones are there only if the batch keeps all. \
                Other keys than the one that created the batch need the scope tokens:read.

                Example:
                  fcm-gateway batch results shop 0198c0de --output ndjson > results.ndjson
                """
        )

        enum Format: String, CaseIterable, ExpressibleByArgument {
            case table
            case ndjson
        }

        @OptionGroup var batch: BatchOptions
        @Option(help: "Only accepted, rejected, unknown, expired, cancelled or waiting recipients.")
        var outcome: Batches.Outcome?
        @Option(name: .customLong("output"), help: "How to print the results.") var format: Format = .table

        func run() async throws {
            try await self.batch.service.call { client in
                var query = [(name: "limit", value: "1000")]
                if let outcome = self.outcome { query.append((name: "outcome", value: outcome.rawValue)) }
                var cursor: String?
                repeat {
                    let page = query + (cursor.map { [(name: "cursor", value: $0)] } ?? [])
                    let path = BatchCommand.path(self.batch.tenant, self.batch.id, "results")
                    let answer = try await client.call(.get, path, query: page)
                    cursor = answer?.text("next_cursor")
                    var output = self.lines(answer?.list("results") ?? [])
                    output.isContinued = cursor != nil
                    try output.write()
                } while cursor != nil
                return CommandOutput("")
            }
        }

        private func lines(_ results: [JSONValue]) -> CommandOutput {
            switch self.format {
            case .ndjson: return CommandOutput(results.map(\.canonicalText).joined(separator: "\n"))
            case .table:
                let columns = ["outcome", "code", "action", "token", "fid", "topic", "condition", "device_group"]
                let shown = columns.filter { column in results.contains { $0[column] != nil } }
                return results.isEmpty
                    ? CommandOutput("") : CommandOutput(TextTable(columns: shown, objects: results).styled)
            }
        }
    }
}

extension Batches.Outcome: ExpressibleByArgument {}
