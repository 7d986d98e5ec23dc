#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The metrics that Prometheus' client libraries give of their process, read from `/proc`.
///
/// On systems without `/proc` there are none.
package struct ProcessMetrics: Sendable {
    /// One metric and its value at the time of reading.
    struct Sample {
        let description: MetricDescription
        let value: Double
    }

    private static let cpuSeconds = MetricDescription(
        name: "process_cpu_seconds_total",
        help: "Processor time spent in user and kernel mode, in seconds.",
        kind: .counter
    )
    private static let residentMemory = MetricDescription(
        name: "process_resident_memory_bytes",
        help: "Memory held in RAM, in bytes.",
        kind: .gauge
    )
    private static let virtualMemory = MetricDescription(
        name: "process_virtual_memory_bytes",
        help: "Address space in use, in bytes.",
        kind: .gauge
    )
    private static let startTime = MetricDescription(
        name: "process_start_time_seconds",
        help: "When the process started, in seconds since the epoch.",
        kind: .gauge
    )
    private static let openFiles = MetricDescription(
        name: "process_open_fds",
        help: "Open file descriptors.",
        kind: .gauge
    )
    private static let maximumFiles = MetricDescription(
        name: "process_max_fds",
        help: "File descriptors the process may have open.",
        kind: .gauge
    )

    #if os(Linux)
    private static let ticksPerSecond = Double(sysconf(Int32(_SC_CLK_TCK)))
    #endif

    /// Read once: the machine's start is derived from its clock and moves when that is set.
    private let startTimeSeconds: Double?

    /// Makes a reader of the metrics of the process that calls it.
    package init() {
        #if os(Linux)
        let stat = ProcessFile.text(of: "/proc/self/stat").flatMap(ProcessStat.init(line:))
        let bootTime = ProcessFile.text(of: "/proc/stat").flatMap(ProcessStat.bootTimeSeconds(stat:))
        if let stat, let bootTime {
            self.startTimeSeconds = Double(bootTime) + Double(stat.startTicks) / Self.ticksPerSecond
        } else {
            self.startTimeSeconds = nil
        }
        #else
        self.startTimeSeconds = nil
        #endif
    }

    #if os(Linux)
    /// The soft limit of open files, which can be asked for when no descriptor is left; without a limit, infinity.
    private static var openFilesLimit: Double? {
        var limits = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        // The call fills the structure it is handed and keeps no reference to it.
        guard unsafe getrlimit(resource, &limits) == 0 else { return nil }
        return limits.rlim_cur == .max ? .infinity : Double(limits.rlim_cur)
    }
    #endif

    /// Reads the metrics; one that cannot be read is left out.
    func samples() -> [Sample] {
        var samples: [Sample] = []
        #if os(Linux)
        let pageBytes = Double(sysconf(Int32(_SC_PAGESIZE)))
        if let stat = ProcessFile.text(of: "/proc/self/stat").flatMap(ProcessStat.init(line:)) {
            samples += [
                Sample(description: Self.cpuSeconds, value: Double(stat.cpuTicks) / Self.ticksPerSecond),
                Sample(description: Self.residentMemory, value: Double(stat.residentPages) * pageBytes),
                Sample(description: Self.virtualMemory, value: Double(stat.virtualBytes)),
            ]
        }
        if let value = self.startTimeSeconds {
            samples.append(Sample(description: Self.startTime, value: value))
        }
        let maximumFiles = Self.openFilesLimit
        // Reading the folder opens a descriptor, which is in the folder too.
        if let entries = ProcessFile.entryCount(of: "/proc/self/fd"), entries > 0 {
            samples.append(Sample(description: Self.openFiles, value: Double(entries - 1)))
        } else if errno == EMFILE, let maximumFiles {
            // There was none left to read the folder with.
            samples.append(Sample(description: Self.openFiles, value: maximumFiles))
        }
        if let maximumFiles { samples.append(Sample(description: Self.maximumFiles, value: maximumFiles)) }
        #endif
        return samples
    }
}
