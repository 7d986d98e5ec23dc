import NIOCore
import StrictJSON

@testable import FCMModel

/// Properties of every body sent to the v1 facade.
enum V1Properties {
    private static let now = 1_700_000_000

    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        let request: V1SendRequest
        do {
            request = try V1RequestDecoder.decode(ByteBuffer(bytes: input))
        } catch {
            try FuzzFinding.requireEqual(V1ReplyWriter.reply(to: error).status, 400, "refused with status")
            try FuzzFinding.require(error.fields.first?.detail.isEmpty == false, "refused without a reason")
            return
        }
        try FuzzFinding.require(request.payloadBytes <= request.target.maxPayloadBytes, "accepted over the limit")
        try Self.check(request.target)
        let encoded = V1Calls(request.message, to: request.target, now: Self.now).body(at: 0)
        do {
            let again = try V1RequestDecoder.decode(encoded)
            try Self.requireEqual(again, request)
            let twice = V1Calls(again.message, to: request.target, now: Self.now).body(at: 0)
            try FuzzFinding.requireEqual(twice, encoded, "written differently the second time")
        } catch let refusal as Refusal {
            throw FuzzFinding("written, but refused: \(refusal)")
        } catch let finding as FuzzFinding {
            throw finding
        } catch {
            throw FuzzFinding("\(error)")
        }
        try Self.checkLegacy(request)
        try Self.checkBlocks(request)
    }

    private static func check(_ target: Target) throws(FuzzFinding) {
        switch target {
        case .token(let text), .installation(let text): try FuzzFinding.require(!text.isEmpty, "an empty token or id")
        case .topic: break
        case .condition(let condition):
            try FuzzFinding.require(condition.fits(.v1), "a condition that does not fit")
        case .tokens, .installations, .notificationKey, .deviceGroup:
            throw FuzzFinding("a target that v1 does not know")
        }
    }

    private static func requireEqual(_ again: V1SendRequest, _ request: V1SendRequest) throws(FuzzFinding) {
        try FuzzFinding.requireEqual(again.target, request.target, "another target")
        try FuzzFinding.requireEqual(again.message, request.message, "another message")
        try FuzzFinding.requireEqual(again.payloadBytes, request.payloadBytes, "another size")
    }

    /// The platforms' parts, as blocks of a REST message with options for all of them, give a message that v1 accepts.
    private static func checkBlocks(_ request: V1SendRequest) throws(FuzzFinding) {
        guard let members = request.message.passThrough, let root = (try? JSONDocument(parsing: members))?.root else {
            throw FuzzFinding("no message")
        }
        var given: [(name: String, value: JSONValue)] = []
        for member in root.members.map(Array.init) ?? [] {
            guard let name = V1Schema.message[member.key]?.name, PlatformBlocks.names.contains(name) else { continue }
            let problems = PlatformBlocks.problems(of: member.value, in: name, atMost: 1)
            try FuzzFinding.require(problems.isEmpty, "the facade accepts what a block may not have: \(problems)")
            given.append((name, member.value))
        }
        guard let blocks = PlatformBlocks(given) else { return }
        var message = Message()
        (message.timeToLive, message.priority, message.collapseKey) = (60, .high, "c")
        message.notification = Notification()
        message.notification?[.sound] = "s"
        message.platforms = blocks
        let body = V1Calls(message, to: request.target, now: Self.now).body(at: 0)
        do {
            let sent = try V1RequestDecoder.decode(body)
            guard let once = sent.message.passThrough else { throw FuzzFinding("no message") }
            let twice = blocks.applied(to: once)
            try FuzzFinding.requireEqual(
                try JSONDocument(parsing: twice, limits: Self.ample).root.canonicalText,
                try JSONDocument(parsing: once, limits: Self.ample).root.canonicalText,
                "a second application changes it"
            )
        } catch let refusal as Refusal {
            // The options add members to a message that may be at a bound.
            let isBound: Set<OutcomeCode> = [.messageTooBig, .tooManyMembers]
            try FuzzFinding.require(isBound.contains(refusal.code), "merged, but refused: \(refusal)")
        } catch let finding as FuzzFinding {
            throw finding
        } catch {
            throw FuzzFinding("\(error)")
        }
        do throws(Refusal) {
            _ = try message.withoutPlatforms(now: Self.now)
        } catch {
            let pointer = error.fields.first?.path ?? ""
            try FuzzFinding.require(
                PlatformBlocks.names.contains { pointer.hasPrefix("/\($0)") },
                "refused without a pointer to a block"
            )
        }
    }

    private static let ample = JSONLimits(maxMembers: .max, maxElements: .max, maxSpecialCharacters: .max)

    /// The translation to the legacy protocol gives a valid legacy request, or is refused.
    private static func checkLegacy(_ request: V1SendRequest) throws(FuzzFinding) {
        let legacy: LegacySendRequest
        do {
            legacy = try request.legacyRequest(now: Self.now)
        } catch {
            try FuzzFinding.requireEqual(V1ReplyWriter.reply(to: error).status, 400, "refused with status")
            return
        }
        try FuzzFinding.requireEqual(legacy.target, request.target, "another target in legacy")
        try FuzzFinding.requireEqual(legacy.message.dryRun, request.message.dryRun, "sent, though only to be checked")
        try FuzzFinding.require(legacy.message.passThrough == nil, "v1's words in legacy")
        try LegacyRequests.check(legacy)
    }
}
