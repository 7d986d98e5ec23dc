import HTTPTypes
import Hummingbird

/// The routes of a listener, to tell an unknown address from a method that is not served there.
struct RouteTable: Sendable {
    private struct Entry {
        var segments: [String]
        var method: HTTPRequest.Method
        /// Whether the path must be spelled like the template; the router forgives repeated and trailing slashes.
        var isExact = false
    }

    private let entries: [Entry]

    /// - Parameters:
    ///   - router: what most requests go through.
    ///   - direct: templates of `POST` routes that don't.
    init(_ router: Router<GatewayRequestContext>, direct: [String] = []) {
        let routed = router.routes.map { route in
            Entry(segments: Self.segments(route.path.description), method: route.method)
        }
        self.entries = routed + direct.map { Entry(segments: Self.segments($0), method: .post, isExact: true) }
    }

    /// The methods served at a path, sorted; empty for an unknown address.
    func methods(at path: String) -> [String] {
        let segments = Self.segments(path)
        let isExact = path == "/" + segments.joined(separator: "/")
        return self.entries
            .filter { Self.matches($0.segments, segments) && (isExact || !$0.isExact) }
            .map(\.method.rawValue)
            .sorted()
    }

    /// Every method and template, in the order in which they were added.
    var routes: [ServedRoute] {
        self.entries.map { entry in
            let segments = entry.segments.map { $0.hasPrefix(":") ? "{\($0.dropFirst())}" : $0 }
            return ServedRoute(method: entry.method.rawValue, template: "/" + segments.joined(separator: "/"))
        }
    }

    private static func segments(_ path: String) -> [String] {
        path.split(separator: "/").map(String.init)
    }

    private static func matches(_ template: [String], _ segments: [String]) -> Bool {
        template.count == segments.count
            && zip(template, segments).allSatisfy { $0 == $1 || $0.hasPrefix(":") || $0.hasPrefix("{") }
    }
}
