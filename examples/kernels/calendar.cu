struct Date {
    short year;
    unsigned char month, day, hour, minute, second, weekday;
};

__device__ inline Date date_of(long long seconds) {
    long long days = seconds / 86400;
    int rest = int(seconds % 86400);
    if (rest < 0) {
        rest += 86400;
        days -= 1;
    }
    int z = int(days) + 719468;
    int era = (z >= 0 ? z : z - 146096) / 146097;
    int in_era = z - era * 146097;
    int year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int shifted = (5 * in_year + 2) / 153;
    int month = shifted < 10 ? shifted + 3 : shifted - 9;
    int year = year_of_era + era * 400 + (month <= 2);
    Date date;
    date.year = short(year);
    date.month = month;
    date.day = in_year - (153 * shifted + 2) / 5 + 1;
    date.hour = rest / 3600;
    date.minute = rest / 60 % 60;
    date.second = rest % 60;
    date.weekday = ((days + 4) % 7 + 7) % 7;
    return date;
}

extern "C" __global__ void calendar(unsigned n, const long long* __restrict__ times, Date* __restrict__ dates) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        dates[i] = date_of(times[i]);
}
