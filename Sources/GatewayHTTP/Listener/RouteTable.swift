import HTTPTypes
import Hummingbird

/// The routes of a listener, to tell an unknown address from a method that is not served there.
struct RouteTable: Sendable {
    private struct Entry {
        var segments: [String]
        var method: HTTPRequest.Method
    }

    private let entries: [Entry]

    init(_ router: Router<GatewayRequestContext>) {
        self.entries = router.routes.map { route in
            Entry(segments: Self.segments(route.path.description), method: route.method)
        }
    }

    /// The methods served at a path, sorted; empty for an unknown address.
    func methods(at path: String) -> [String] {
        let segments = Self.segments(path)
        return self.entries
            .filter { Self.matches($0.segments, segments) }
            .map(\.method.rawValue)
            .sorted()
    }

    private static func segments(_ path: String) -> [String] {
        path.split(separator: "/").map(String.init)
    }

    private static func matches(_ template: [String], _ segments: [String]) -> Bool {
        template.count == segments.count
            && zip(template, segments).allSatisfy { $0 == $1 || $0.hasPrefix(":") || $0.hasPrefix("{") }
    }
}
