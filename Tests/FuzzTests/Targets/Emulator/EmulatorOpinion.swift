@testable import FCMEmulator

/// What the emulator makes of an input, which it reads with code of its own.
///
/// A file of its own, since the emulator has other types by the same names as the gateway.
enum EmulatorOpinion {
    /// A request in words that both know.
    struct Request: Equatable {
        var isDryRun: Bool
        var dataKeys: Set<String>
        var collapseKey: String?
        var timeToLive: Int?
        var restrictedPackageName: String?
    }

    /// A condition in words that both know.
    struct Condition: Equatable {
        var canonical: String
        var topics: [String]
    }

    /// The names and values of a form; nil where it can't be decoded.
    static func formFields(_ body: [UInt8]) -> [[String]]? {
        (try? FormFields.read(body))?.map { [$0.name, $0.value] }
    }

    /// A form sent to `/fcm/send`; nil where it is refused.
    static func form(_ body: [UInt8]) -> Request? {
        (try? LegacyFormValidator.validate(body)).map { Self.request($0) }
    }

    /// A JSON request sent to `/fcm/send`; nil where it is refused.
    static func json(_ body: [UInt8]) -> Request? {
        (try? LegacySendValidator.validate(body)).map { Self.request($0) }
    }

    /// A condition under the limits of v1, or else of the legacy protocol; nil where it is refused.
    static func condition(_ text: String, isV1: Bool) -> Condition? {
        (try? ConditionEvaluator(text, profile: isV1 ? .v1 : .legacy))
            .map { Condition(canonical: $0.canonical, topics: $0.topics) }
    }

    private static func request(_ message: AcceptedMessage) -> Request {
        Request(
            isDryRun: message.isDryRun,
            dataKeys: Set(message.content.data.keys),
            collapseKey: message.content.collapseKey,
            timeToLive: message.content.timeToLive,
            restrictedPackageName: message.content.restrictedPackageName
        )
    }
}
