import EventLoopHTTP
import GatewayTestKit
import NIOCore

/// Looks for the bodies that hold an event loop longest: `swift run -c release Micro bodies [SECONDS [ROUTE]]`.
///
/// For every route a search goes through all plain shapes and then climbs from the slowest of them, as many seconds as
/// allowed (6). What it finds is measured beside an ordinary `data` message of as many bytes on the same route.
enum BodySearch {
    /// How much longer than the ordinary message the worst body may take.
    private static let maxRatio = 4.0
    private static let rounds = 11

    /// Prints the table of the routes that have a text in their names.
    ///
    /// - Returns: whether every route keeps within the ratio.
    static func run(seconds: Double, route text: String) async throws -> Bool {
        let listeners = try await BodyListeners()
        var isGood = true
        print("| route | media type | bytes | worst body found | its time | ordinary | ratio | tried |")
        print("|---|---|---|---|---|---|---|---|")
        for route in BodyRoute.all where text.isEmpty || route.name.contains(text) {
            let deadline = ContinuousClock.now + .seconds(seconds)
            let (shape, tried) = await Self.worst(of: route, listeners, until: deadline)
            let request = listeners.request(route, shape.body(for: route))
            let ordinary = listeners.request(route, Self.ordinary(for: route))
            var (times, ordinaryTimes): ([Duration], [Duration]) = ([], [])
            for _ in 0..<Self.rounds {
                ordinaryTimes.append(await listeners.time(ordinary, isAdmin: route.isAdmin))
                times.append(await listeners.time(request, isAdmin: route.isAdmin))
            }
            let (time, base) = (times.sorted()[Self.rounds / 2], ordinaryTimes.sorted()[Self.rounds / 2])
            let ratio = time / base
            isGood = isGood && ratio <= Self.maxRatio
            print(
                "| \(route.name) | \(route.isForm ? "form" : "JSON") | \(route.maxBytes) "
                    + "| \(shape.description(for: route)) | \(Self.text(time)) | \(Self.text(base)) "
                    + "| \(Double(Int(ratio * 100)) / 100) | \(tried) |"
            )
        }
        return isGood
    }

    /// A `data` message as senders write it, of as many bytes as the route takes: pairs of 64 bytes, and longer ones where
    /// there would be more pairs than a body may have.
    private static func ordinary(for route: BodyRoute) -> ByteBuffer {
        let count = min(route.maxBytes / 64, route.maxBytes <= BodyRoute.small ? 195 : 1_950)
        let size = route.maxBytes / count
        var text = route.isForm ? "registration_id=device" : "{\"token\":\"device\",\"data\":{"
        for index in 0..<count {
            let name = "field_\(1_000 + index)"
            let value = String(repeating: "v", count: size - name.utf8.count - (route.isForm ? 7 : 8))
            text += route.isForm ? "&data.\(name)=\(value)" : "\(index > 0 ? "," : "")\"\(name)\":\"\(value)\""
        }
        return ByteBuffer(string: text + (route.isForm ? "" : "}}"))
    }

    private static func worst(
        of route: BodyRoute,
        _ listeners: BodyListeners,
        until deadline: ContinuousClock.Instant
    ) async -> (BodyShape, tried: Int) {
        var random = SeededGenerator(seed: 1)
        var found: [(shape: BodyShape, time: Duration)] = []
        var seen: Set<BodyShape> = []
        func attempt(_ shape: BodyShape) async {
            guard seen.insert(shape).inserted else { return }
            let request = listeners.request(route, shape.body(for: route))
            let first = await listeners.time(request, isAdmin: route.isAdmin)
            // Only a time that would count is worth taking twice; the shorter of two is less of an accident.
            guard first > found.last?.time ?? .zero || found.count < 8 else { return }
            let time = min(first, await listeners.time(request, isAdmin: route.isAdmin))
            found.append((shape, time))
            found.sort { $0.time > $1.time }
            if found.count > 8 { found.removeLast() }
        }
        let start = ContinuousClock.now
        let half = start + start.duration(to: deadline) / 2
        for shape in Self.plainShapes(of: route).shuffled(using: &random) {
            guard ContinuousClock.now < half else { break }
            await attempt(shape)
        }
        while ContinuousClock.now < deadline {
            guard var shape = found.randomElement(using: &random)?.shape else { break }
            for _ in 0..<Int.random(in: 1...3, using: &random) { shape.change(of: route, using: &random) }
            await attempt(shape)
        }
        return (found.first?.shape ?? BodyShape(), seen.count)
    }

    /// Every place with every kind and every unit.
    private static func plainShapes(of route: BodyRoute) -> [BodyShape] {
        let units = route.isForm ? BodyShape.formUnits.count : BodyShape.units.count
        return route.places.indices.flatMap { place in
            BodyShape.Kind.allCases.flatMap { kind in
                (0..<units)
                    .map { unit in
                        BodyShape(
                            place: place,
                            kind: kind,
                            unit: unit,
                            keyUnit: unit,
                            count: unit % BodyShape.counts.count,
                            keyShare: unit % 9
                        )
                    }
            }
        }
    }

    private static func text(_ duration: Duration) -> String {
        let microseconds = Int(duration / .microseconds(1))
        return "\(microseconds / 1_000).\(String(1_000 + microseconds % 1_000).dropFirst()) ms"
    }
}

extension BodyShape {
    /// Goes to a neighbour.
    fileprivate mutating func change(of route: BodyRoute, using random: inout SeededGenerator) {
        switch Int.random(in: 0..<9, using: &random) {
        case 0: self.place = Int.random(in: route.places.indices, using: &random)
        case 1: self.kind = Kind.allCases.randomElement(using: &random) ?? .text
        case 2: self.unit = Int.random(in: Self.units.indices, using: &random)
        case 3: self.keyUnit = Int.random(in: Self.units.indices, using: &random)
        case 4: self.keyStart = Int.random(in: Self.keyStarts.indices, using: &random)
        case 5: self.count = Int.random(in: Self.counts.indices, using: &random)
        case 6: self.keyShare = Int.random(in: 0...8, using: &random)
        case 7: self.isAlike.toggle()
        default: self.repeatsFirst.toggle()
        }
    }
}
