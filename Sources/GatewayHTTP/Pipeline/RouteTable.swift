import FCMModel
import HTTPTypes

/// The routes of a listener.
///
/// One look-up by a path's segments finds the endpoints, the parameters and the body's limit, and the served methods for
/// a 405. Templates are compared in the order of their first addition: sends come first. No two match
/// the same path.
struct RouteTable: Sendable {
    final class Row: Sendable {
        /// The first method's route: it has the properties that all methods of an address share.
        let route: Route
        let endpoints: [(method: HTTPRequest.Method, endpoint: any Endpoint)]
        fileprivate let template: [UInt8]
        fileprivate let segments: [Segment]
        fileprivate let names: [String]

        var methods: [String] { self.endpoints.map(\.method.rawValue).sorted() }

        fileprivate init(_ first: any Endpoint, _ endpoints: [any Endpoint]) {
            self.route = first.route
            self.endpoints = endpoints.map { ($0.route.method, $0) }
            let template = Array(first.route.template.utf8)
            let parts = template.split(separator: UInt8(ascii: "/"))
            let parameters = parts.filter { $0.first == UInt8(ascii: "{") }
            self.template = template
            self.segments = parts.map { part in
                guard part.first == UInt8(ascii: "{") else { return .literal(part.indices) }
                return part.dropLast().last == UInt8(ascii: ".") ? .rest : .parameter
            }
            self.names = parameters.map { name in
                String(
                    decoding: name.dropFirst().prefix { $0 != UInt8(ascii: "}") && $0 != UInt8(ascii: ".") },
                    as: UTF8.self
                )
            }
            precondition(parameters.count <= PathParameters.maxCount, "\(first.route.template) has too many parameters")
        }
    }

    /// A segment of a template. It holds no reference, because reference counting would slow every look-up.
    fileprivate enum Segment: Sendable {
        /// The bytes of this segment in the template.
        case literal(Range<Int>)
        case parameter
        /// `{name...}`: the rest of the path, with its slashes. It is the last segment.
        case rest
    }

    let rows: [Row]

    init(_ endpoints: [any Endpoint]) {
        var seen: Set<String> = []
        self.rows = endpoints.compactMap { first in
            let template = first.route.template
            guard seen.insert(template).inserted else { return nil }
            return Row(first, endpoints.filter { $0.route.template == template })
        }
    }

    /// Returns the row of a path with its query, and the values of its parameters; `nil` for an unknown address.
    func row(at path: [UInt8]) -> (Row, PathParameters)? {
        guard let (row, places) = self.places(in: path) else { return nil }
        return (row, PathParameters(path, row.names, places))
    }

    /// Returns the row of a path with its query, without the parameters; `nil` for an unknown address.
    func rowAlone(at path: [UInt8]) -> Row? {
        self.places(in: path)?.0
    }

    private func places(in path: [UInt8]) -> (Row, ParameterPlaces)? {
        for row in self.rows {
            if let places = ParameterPlaces(in: path, of: row) { return (row, places) }
        }
        return nil
    }
}

/// The parameters of a route as slices of a request's path, not unescaped.
struct PathParameters: Sendable {
    static let maxCount = 3

    /// No parameters.
    static let none = PathParameters([], [], ParameterPlaces())

    private let path: [UInt8]
    private let names: [String]
    private let places: ParameterPlaces

    fileprivate init(_ path: [UInt8], _ names: [String], _ places: ParameterPlaces) {
        self.path = path
        self.names = names
        self.places = places
    }

    subscript(_ name: String) -> ArraySlice<UInt8>? {
        switch self.names.firstIndex(of: name) {
        case 0: self.path[self.places.values.0]
        case 1: self.path[self.places.values.1]
        case 2: self.path[self.places.values.2]
        default: nil
        }
    }

    /// A parameter's text; empty if the route has no such parameter.
    func text(_ name: String) -> String {
        self[name].map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// A parameter's text without escapes; `nil` for a broken escape or bytes that are not UTF-8.
    func decoded(_ name: String) -> String? {
        self[name].flatMap { PercentEncoding.decoded($0) }
    }
}

/// The places of a route's parameters in a path.
private struct ParameterPlaces {
    // Not an array, which would be allocated for every request.
    var values: (Range<Int>, Range<Int>, Range<Int>) = (0..<0, 0..<0, 0..<0)
    private var count = 0

    init() {}

    /// Finds the parameters in a path that matches a row's template; `nil` for any other path.
    init?(in path: [UInt8], of row: RouteTable.Row) {
        let slash = UInt8(ascii: "/")
        let spelling = row.route.spelling
        var index = 0
        func isEnd(_ index: Int) -> Bool { index == path.count || path[index] == UInt8(ascii: "?") }
        for segment in row.segments {
            guard index < path.count, path[index] == slash else { return nil }
            index += 1
            if spelling == .anySlashes {
                while index < path.count, path[index] == slash { index += 1 }
            }
            let start = index
            if case .literal(let name) = segment {
                var matched = name.lowerBound
                while matched < name.upperBound, index < path.count, path[index] == row.template[matched] {
                    matched += 1
                    index += 1
                }
                if matched == name.upperBound, isEnd(index) || path[index] == slash { continue }
                guard spelling == .escaped else { return nil }
            }
            if case .rest = segment {
                while !isEnd(index) { index += 1 }
            }
            while !isEnd(index), path[index] != slash { index += 1 }
            switch segment {
            case .literal(let name):
                let text = PercentEncoding.decoded(path[start..<index])
                guard text?.utf8.elementsEqual(row.template[name]) == true else { return nil }
            case .parameter, .rest:
                guard index > start || spelling == .escaped else { return nil }
                switch self.count {
                case 0: self.values.0 = start..<index
                case 1: self.values.1 = start..<index
                default: self.values.2 = start..<index
                }
                self.count += 1
            }
        }
        if spelling == .anySlashes {
            while index < path.count, path[index] == slash { index += 1 }
        }
        guard isEnd(index) else { return nil }
    }
}
