import EventLoopHTTP
import GatewayCore
import GatewayService
import GatewayUpstream

/// Compares what the configuration asks for with what the machine or the container has.
enum ResourcesCheck {
    /// What the process needs beside the buffers that the configuration bounds.
    static let baseBytes = 128 << 20

    /// Examines descriptors, memory and cores.
    static func examine(_ configuration: GatewayConfiguration, _ machine: MachineFacts) -> [Finding] {
        [
            self.descriptors(configuration, machine), self.memory(configuration, machine),
            self.cores(configuration, machine),
        ]
    }

    private static func descriptors(_ configuration: GatewayConfiguration, _ machine: MachineFacts) -> Finding {
        guard let limit = machine.descriptors else {
            return .ok(.resources, "file descriptors", "are not bounded")
        }
        let plan = DescriptorPlan(configuration, limit: limit)
        let bounds = [
            ("http.maxConnections", plan.dataConnections, configuration.http.server.maxConnections),
            ("admin.maxConnections", plan.adminConnections, configuration.admin.server.maxConnections),
            (
                "upstream.maxConnectionsPerLoop", plan.upstreamConnectionsPerLoop,
                configuration.upstream.maxConnectionsPerLoop
            ),
        ]
        let lowered = bounds.filter { $0.1 < $0.2 }.map { "\($0.1) of the \($0.2) connections of \($0.0)" }
        guard !lowered.isEmpty else {
            return .ok(.resources, "file descriptors", "\(limit) are enough for the connections that are configured")
        }
        return .warning(
            .resources,
            "file descriptors",
            "\(limit) leave room for " + lowered.joined(separator: ", "),
            """
            Raise the limit to \(DescriptorPlan.descriptors(for: configuration)) (LimitNOFILE= of systemd, ulimit -n, \
            --ulimit nofile= of containers)
            """
        )
    }

    private static func memory(_ configuration: GatewayConfiguration, _ machine: MachineFacts) -> Finding {
        let buffers = configuration.http.server.maxBufferedBytes + configuration.audit.queueBytes
        let place = machine.isContained ? "the container" : "the machine"
        let seen = "\(place) has \(machine.memoryBytes >> 20) MiB; the buffers may take \(buffers >> 20) MiB of them"
        guard machine.memoryBytes - Self.baseBytes < buffers else { return .ok(.resources, "memory", seen) }
        return .warning(
            .resources,
            "memory",
            seen,
            "Allow \(place) \(Self.baseBytes >> 20) MiB more than that, or lower http.maxBufferedBytes or audit.queueBytes"
        )
    }

    private static func cores(_ configuration: GatewayConfiguration, _ machine: MachineFacts) -> Finding {
        let loops = configuration.eventLoops
        let cores = machine.cores == machine.cores.rounded() ? "\(Int(machine.cores))" : "\(machine.cores)"
        let seen = "\(loops) event loops on \(cores) cores"
        guard Double(loops) > machine.cores.rounded(.up) else { return .ok(.resources, "cores", seen) }
        return .warning(
            .resources,
            "cores",
            seen,
            "Lower eventLoops to the number of cores: more loops only wait for each other"
        )
    }
}
