import FCMModel
import Foundation
import GatewayCore
import GatewayStorage
import NIOCore
import StrictJSON

/// Measures the parts of a send one by one: `swift run -c release Micro`.
///
/// `Micro bodies` looks for the costliest bodies instead; `Micro writer` measures the audit's writer on PostgreSQL
/// alone, `Micro directory` changes of tenants alone.
@main
struct Micro {
    private static let message = """
        {"token":"cT9m:APA91bHexampleTokenOfTheUsualLengthWithLettersAndDigits0123456789abcdefghijklmnopqrstuvwxyz\
        ABCDEFGHIJKLMNOPQRSTUVWXYZ","notification":{"title":"Your order","body":"It is on its way to you now"},\
        "data":{"order":"4711","screen":"orders"},"priority":"high","ttl":3600}
        """

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "bodies" {
            let words = Array(arguments.dropFirst())
            let seconds = words.first.flatMap { Double($0) } ?? 6
            guard try await BodySearch.run(seconds: seconds, route: words.dropFirst().first ?? "") else {
                exit(EXIT_FAILURE)
            }
            return
        }
        if arguments.first == "writer" {
            for row in try await Self.writing(Self.record()) { print(row) }
            return
        }
        if arguments.first == "directory" {
            for row in try await Self.changing() { print(row) }
            return
        }
        print("| what | processor time |")
        print("|---|---|")
        print(try await Self.reading().row)
        print(try await Self.writing().row)
        print(await Self.authenticating().row)
        print(await Self.pseudonyms().row)
        print(await Self.chaining().row)
        for batch in [100, 500] {
            print(try await Self.auditRows(batch: batch).row)
        }
        for row in try await Self.verifying(Self.record()) { print(row) }
        for row in await Self.limiting() { print(row) }
        for row in try await Self.screening() { print(row) }
        for row in try await Self.changing() { print(row) }
        for row in try await Self.writing(Self.record()) { print(row) }
    }

    private static func reading() async throws -> Measurement {
        let body = ByteBuffer(string: Self.message)
        return try await Measurement.measure("read a message of \(body.readableBytes) bytes", operations: 20_000) {
            for _ in 0..<20_000 {
                _ = try JSONDocument(parsing: body).root.kind
            }
        }
    }

    private static func writing() async throws -> Measurement {
        var message = Message()
        var notification = Notification()
        notification[.title] = "Your order"
        notification[.body] = "It is on its way to you now"
        message.notification = notification
        message.data = [DataEntry(key: "order", value: "4711"), DataEntry(key: "screen", value: "orders")]
        message.priority = .high
        message.timeToLive = 3_600
        let target = Target.token(Self.token(1))
        return try await Measurement.measure("write it for the legacy protocol", operations: 20_000) {
            for _ in 0..<20_000 {
                _ = try LegacyRequestEncoder.encode(message, to: target)
            }
        }
    }

    private static func authenticating() async -> Measurement {
        let key = APIKey.generate()
        let pepper = APIKey.Pepper(Secret(randomBytes: 32))
        let digest = pepper.digest(of: key)
        let bytes = key.secret.revealBytes()[...]
        return await Measurement.measure("read and check an API key", operations: 20_000) {
            for _ in 0..<20_000 {
                guard APIKey.id(in: bytes) != nil, pepper.matches(bytes, digest: digest) else { return }
            }
        }
    }

    private static func pseudonyms() async -> Measurement {
        let pseudonymizer = Pseudonymizer(auditKey: Secret(randomBytes: 32), tenantSalt: [1, 2, 3])
        let token = Self.token(1)
        return await Measurement.measure("make a token's pseudonym", operations: 20_000) {
            for _ in 0..<20_000 {
                _ = pseudonymizer.pseudonym(of: token)
            }
        }
    }

    private static func chaining() async -> Measurement {
        let record = Self.record()
        return await Measurement.measure("chain an audit record", operations: 20_000) {
            var chain = AuditChain(writer: 1)
            for _ in 0..<20_000 {
                _ = chain.append(record)
            }
        }
    }

    private static func auditRows(batch: Int) async throws -> Measurement {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fcm-gateway-micro-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let database = try SQLiteDatabase(path: folder.appendingPathComponent("gateway.sqlite").path)
        let store = SQLAuditStore(database: database)
        let sealer = AuditSealer(auditKey: Secret(randomBytes: 32))
        let record = Self.record()
        let batches = 20_000 / batch
        var chain = AuditChain(writer: 1)
        let name = "chain and store an audit record, \(batch) at a time"
        return try await Measurement.measure(name, operations: batch * batches) {
            for _ in 0..<batches {
                var longer = chain
                let records = (0..<batch).map { _ in longer.append(record) }
                try await store.append(records, head: sealer.head(of: longer, state: .open))
                chain = longer
            }
        }
    }

    /// A limiter that knows a million devices: the time of one check and the memory of one device.
    private static func limiting() async -> [String] {
        let devices = 1_000_000
        let pseudonymizer = Pseudonymizer(auditKey: Secret(randomBytes: 32), tenantSalt: [1])
        let tenant = LimitKey(pseudonymizer.pseudonym(of: "tenant"))
        let keys = (0..<devices).map { LimitKey(pseudonymizer.pseudonym(of: String($0))) }
        guard let ample = RatePolicy(rate: 1_000_000, periodSeconds: 1, burst: 1_000_000) else { return [] }
        let policies = LimitPolicies(tenant: [ample])
        let limiter = MemoryRateLimiter()
        let now = Timestamp(microseconds: 1_700_000_000_000_000)
        func check(_ key: LimitKey, at now: Timestamp) async {
            _ = await limiter.admit(
                LimitRequest(tenant: tenant, policies: policies, recipients: .devices([key]), isCollapsible: false),
                now: now
            )
        }
        let before = ResidentMemory.bytes
        for key in keys { await check(key, at: now) }
        let bytes = Double(ResidentMemory.bytes - before) / Double(devices)
        let measurement = await Measurement.measure("check a device's limits, a million known", operations: 100_000) {
            for index in 0..<100_000 { await check(keys[index * 7 % devices], at: now) }
        }
        return [measurement.row, "| memory of a device in the limiter | \(Int(bytes.rounded())) bytes |"]
    }

    private static func token(_ number: Int) -> String {
        "cT9m:APA91bHexampleTokenOfTheUsualLengthWithLettersAndDigits0123456789abcdefghijklmnopqrstuvwxyzABCDE\(number)"
    }

    private static func record() -> AuditRecord {
        var record = AuditRecord(
            time: Timestamp(microseconds: 1_700_000_000_000_000),
            tenant: "bench",
            principal: "key:abcdefghij",
            action: "message.send",
            outcome: .accepted,
            requestID: "01932f7e-0000-7000-8000-000000000000"
        )
        record.method = "POST"
        record.targetKind = "token"
        record.targets = Array(repeating: 7, count: Pseudonym.byteCount)
        record.recipients = 1
        record.accepted = 1
        record.bytes = 87
        record.upstreamCode = "200"
        record.fcmMessageID = "0:1700000000123456%31bd1c9631bd1c96"
        record.messageID = "01932f7e-0000-7000-8000-000000000001"
        return record
    }
}
