import Foundation

/// A path by which subscriptions are kept.
enum TopicRequestPath: Equatable {
    /// `/iid/v1:batchAdd` and `/iid/v1:batchRemove`.
    case batch(adds: Bool)
    /// `/iid/info/<token>`.
    case info(token: String)
    /// `/iid/v1/<token>/rel/topics/<topic>`.
    case relation(token: String, topic: String)
    /// `/v1/projects/<project>/registrations/<token>/topicSubscriptions`, and the same with `/<topic>`.
    case subscriptions(project: String, token: String, topic: String?)

    /// Reads a path without query; nil for a path of something else.
    init?(_ path: String) {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
        func text(_ index: Int) -> String { segments[index].removingPercentEncoding ?? "" }
        switch segments {
        case ["iid", "v1:batchAdd"]:
            self = .batch(adds: true)
        case ["iid", "v1:batchRemove"]:
            self = .batch(adds: false)
        case _ where segments.count == 3 && segments[0] == "iid" && segments[1] == "info":
            self = .info(token: text(2))
        case _ where segments.count == 6 && segments[..<2] == ["iid", "v1"] && segments[3...4] == ["rel", "topics"]:
            self = .relation(token: text(2), topic: text(5))
        case _
        where (6...7).contains(segments.count) && segments[..<2] == ["v1", "projects"]
            && segments[3] == "registrations" && segments[5] == "topicSubscriptions":
            self = .subscriptions(project: text(2), token: text(4), topic: segments.count == 7 ? text(6) : nil)
        default:
            return nil
        }
    }

    /// The devices that a request to this path is about.
    func tokens(body: [UInt8]) -> [String] {
        switch self {
        case .info(let token), .relation(let token, _), .subscriptions(_, let token, _):
            return [token]
        case .batch:
            guard let members = try? JSONValue.members(of: body),
                case .array(let list)? = members["registration_tokens"]
            else { return [] }
            return list.map(\.text)
        }
    }
}
